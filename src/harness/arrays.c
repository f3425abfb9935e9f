/* Arrays of doubles for kernels: alignment, mutual offset, static or dynamic, guards. */
#include <stdlib.h>

#include "internal.h"

enum { ALIGN = 4096, GUARD = PL_LINE };

/* Static arrays of a fixed maximum length, in one structure so that their distance is known: 16 MiB and two pages, the
 * same whatever n is (hager2004, section 3.1, figure 2). */
#define STATIC_MAX ((size_t)1 << 21)
static struct { _Alignas(ALIGN) unsigned char room[PL_MAX_ARRAYS][STATIC_MAX * sizeof(double) + 2 * ALIGN]; } fixed;

static size_t stride(const pl_case *c)
{
    const size_t bytes = c->n * sizeof(double) + 2 * GUARD;
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Address space of all arrays: room for guards, alignment and shifts. */
static size_t space(const pl_case *c, int count)
{
    return (size_t)count * (stride(c) + 2 * ALIGN) + (size_t)(count * (count - 1) / 2) * c->shift;
}

static void check_static(const pl_case *c, int count)
{
    const size_t most = (ALIGN - GUARD) / (count > 1 ? (size_t)count - 1 : 1) / sizeof(double) * sizeof(double);
    if (c->alloc == PL_STATIC && (c->n > STATIC_MAX || c->shift > most))
        pl_fail("--alloc static: the arrays hold %zu elements and shift by up to %zu bytes: choose a smaller size or "
                "shift, or dynamic arrays", STATIC_MAX, most);
}

/* Asked for every case before the first is run: what static arrays cannot hold is refused then. */
size_t pl_arrays_footprint(const pl_case *c, int count)
{
    check_static(c, count);
    return (size_t)count * c->n * sizeof(double);
}

pl_arrays *pl_arrays_create(const pl_case *c, int count)
{
    check_static(c, count);
    pl_arrays *set = pl_allocate(sizeof *set, "the arrays");
    set->count = count;
    set->n = c->n;
    set->is_static = c->alloc == PL_STATIC;
    if (set->is_static) {
        set->base = fixed.room[0];
        set->mapped = sizeof fixed;
        pl_advise(set->base, set->mapped, c->pages);
    } else {
        set->mapped = space(c, count);
        set->base = pl_map(set->mapped, c->pages);
        if (!set->base) {
            free(set);
            return NULL;
        }
    }
    unsigned char *next = set->base;
    for (int i = 0; i < count; i++) {
        /* Alignment comes first, then the shift. */
        unsigned char *start = set->is_static ? fixed.room[i] : next;
        set->array[i] = (double *)(start + ALIGN + (size_t)i * c->shift);
        next += stride(c) + ALIGN + ((size_t)i * c->shift + ALIGN - 1) / ALIGN * ALIGN;
    }
    return set;
}

/* Another number for each array: a loop that goes too far reads guards as well, and what it makes of them (b + c * d)
 * must not be the guard that it writes to. */
static double guard_of(int array) { return 1009 + 997.0 * array; }

void pl_arrays_set_guards(pl_arrays *set)
{
    for (int i = 0; i < set->count; i++)
        for (size_t k = 0; k < GUARD / sizeof(double); k++)
            set->array[i][set->n + k] = *(set->array[i] - 1 - k) = guard_of(i);
}

bool pl_arrays_guards_intact(const pl_arrays *set)
{
    for (int i = 0; i < set->count; i++)
        for (size_t k = 0; k < GUARD / sizeof(double); k++)
            if (set->array[i][set->n + k] != guard_of(i) || *(set->array[i] - 1 - k) != guard_of(i))
                return false;
    return true;
}

void pl_arrays_destroy(void *data)
{
    pl_arrays *set = data;
    if (set && !set->is_static)
        pl_unmap(set->base, set->mapped);
    free(set);
}
