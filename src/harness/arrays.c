/* Arrays of doubles for kernels: alignment, mutual offset, static or dynamic, guards. */
#include <stdlib.h>

#include "internal.h"

enum { ALIGN = 4096, GUARD = PL_LINE, GUARD_DOUBLES = PL_LINE / sizeof(double) };

const char *const pl_allocs[] = {[PL_DYNAMIC] = "dynamic", [PL_STATIC] = "static", [PL_MALLOC] = "malloc", [PL_ALLOCATE] = "allocate", NULL};

/* Static arrays of a fixed length of 10^6, whatever n is (hager2004, section 3.1, figure 2): one after the other, 8,000,000 bytes apart,
 * which is 512 more than whole pages.  The guards take the first and the last line of each. */
enum { STATIC_LENGTH = 1000000 };
#define STATIC_MAX ((size_t)STATIC_LENGTH - 2 * GUARD_DOUBLES)
static _Alignas(ALIGN) double fixed[PL_MAX_ARRAYS][STATIC_LENGTH];

static size_t stride(const pl_case *c) { return pl_round_up(c->n * sizeof(double) + 2 * GUARD, ALIGN); }

/* Address space of all arrays: room for guards, alignment and shifts. */
static size_t space(const pl_case *c, int count)
{
    return (size_t)count * (stride(c) + 2 * ALIGN) + (size_t)(count * (count - 1) / 2) * c->shift;
}

static void check_alloc(const pl_case *c)
{
    if (c->alloc == PL_STATIC && c->n > STATIC_MAX)
        pl_fail("--alloc static: the arrays hold %zu elements: choose a smaller size, or dynamic arrays", STATIC_MAX);
}

/* Asked for every case before the first is run: what static arrays cannot hold is refused then. */
size_t pl_arrays_footprint(const pl_case *c, int count)
{
    check_alloc(c);
    return (size_t)count * c->n * sizeof(double);
}

static void create_static(pl_arrays *set, const pl_case *c)
{
    set->base = (unsigned char *)fixed;
    set->mapped = sizeof fixed;
    pl_advise(set->base, set->mapped, c->pages);
    for (int i = 0; i < set->count; i++)
        set->array[i] = fixed[i] + GUARD_DOUBLES;
}

static void create_dynamic(pl_arrays *set, const pl_case *c)
{
    set->mapped = space(c, set->count);
    unsigned char *next = set->base = pl_map(set->mapped, c->pages);
    if (!next)
        pl_no_memory(c);
    for (int i = 0; i < set->count; i++) {
        /* Alignment comes first, then the shift. */
        set->array[i] = (double *)(next + ALIGN + (size_t)i * c->shift);
        next += stride(c) + ALIGN + ((size_t)i * c->shift + ALIGN - 1) / ALIGN * ALIGN;
    }
}

static void create_each(pl_arrays *set, const pl_case *c)
{
    const size_t doubles = c->n + 2 * GUARD_DOUBLES;
    set->give_back = c->alloc == PL_MALLOC ? free : c->kernel->deallocate;
    for (int i = 0; i < set->count; i++) {
        set->own[i] = c->alloc == PL_MALLOC ? malloc(doubles * sizeof(double)) : c->kernel->allocate(doubles);
        if (!set->own[i])
            pl_no_memory(c);
        pl_advise(set->own[i], doubles * sizeof(double), c->pages);
        set->array[i] = (double *)set->own[i] + GUARD_DOUBLES;
    }
}

pl_arrays *pl_arrays_create(const pl_case *c, int count)
{
    check_alloc(c);
    pl_arrays *set = pl_allocate(sizeof *set, "the arrays");
    set->count = count;
    set->n = c->n;
    set->alloc = c->alloc;
    (c->alloc == PL_STATIC ? create_static : c->alloc == PL_DYNAMIC ? create_dynamic : create_each)(set, c);
    return set;
}

/* Another number for each array: a loop that goes too far reads guards as well, and what it makes of them (b + c * d)
 * must not be the guard that it writes to. */
static double guard_of(int array) { return 1009 + 997.0 * array; }

void pl_arrays_set_guards(pl_arrays *set)
{
    for (int i = 0; i < set->count; i++)
        for (size_t k = 0; k < GUARD_DOUBLES; k++)
            set->array[i][set->n + k] = *(set->array[i] - 1 - k) = guard_of(i);
}

bool pl_arrays_guards_intact(const pl_arrays *set)
{
    for (int i = 0; i < set->count; i++)
        for (size_t k = 0; k < GUARD_DOUBLES; k++)
            if (set->array[i][set->n + k] != guard_of(i) || *(set->array[i] - 1 - k) != guard_of(i))
                return false;
    return true;
}

/* Of malloc and ALLOCATE each is elsewhere: the first. */
const void *pl_arrays_extent(const pl_arrays *set, size_t *bytes)
{
    const double *const end = set->array[set->own[0] ? 0 : set->count - 1] + set->n;
    *bytes = (size_t)((const char *)end - (const char *)set->array[0]);
    return set->array[0];
}

void pl_arrays_destroy(void *data)
{
    pl_arrays *set = data;
    if (set->alloc == PL_DYNAMIC)
        pl_unmap(set->base, set->mapped);
    for (int i = 0; i < set->count; i++)
        if (set->own[i])
            set->give_back(set->own[i]);
    free(set);
}
