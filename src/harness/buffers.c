/* Buffers of any type for kernels: page-aligned plus an offset, guarded on both sides. */
#include <stdlib.h>

#include "internal.h"

enum { ALIGN = 4096, GUARD = PL_LINE };

pl_buffers *pl_buffers_create(const pl_case *c, int count, const size_t *bytes, const size_t *offset)
{
    pl_buffers *set = pl_allocate(sizeof *set, "the buffers");
    set->count = count;
    for (int i = 0; i < count; i++) {
        set->bytes[i] = bytes[i];
        set->mapped += ALIGN + pl_round_up((offset ? offset[i] : 0) + bytes[i] + GUARD, ALIGN);
    }
    set->base = pl_map(set->mapped, c->pages);
    if (!set->base)
        pl_no_memory(c);
    unsigned char *next = set->base;
    for (int i = 0; i < count; i++) {
        const size_t shift = offset ? offset[i] : 0;
        set->at[i] = next + ALIGN + shift;
        next += ALIGN + pl_round_up(shift + bytes[i] + GUARD, ALIGN);
    }
    return set;
}

/* Quiet NaN as float and as double, with another payload for each buffer: a loop that reads beyond the end spoils its
 * result, and one that copies a guard onto another is found. */
static unsigned char guard_of(int buffer, int k)
{
    const unsigned char pattern[] = {(unsigned char)(buffer + 1), (unsigned char)(buffer + 1), 0xFF, 0x7F};
    return pattern[k % 4];
}

void pl_buffers_set_guards(pl_buffers *set)
{
    for (int i = 0; i < set->count; i++)
        for (int k = 0; k < GUARD; k++) {
            ((unsigned char *)set->at[i] - GUARD)[k] = guard_of(i, k);
            ((unsigned char *)set->at[i] + set->bytes[i])[k] = guard_of(i, k);
        }
}

bool pl_buffers_guards_intact(const pl_buffers *set)
{
    for (int i = 0; i < set->count; i++)
        for (int k = 0; k < GUARD; k++)
            if (((unsigned char *)set->at[i] - GUARD)[k] != guard_of(i, k) ||
                ((unsigned char *)set->at[i] + set->bytes[i])[k] != guard_of(i, k))
                return false;
    return true;
}

void pl_buffers_destroy(void *data)
{
    pl_buffers *set = data;
    pl_unmap(set->base, set->mapped);
    free(set);
}

void pl_first_buffers_destroy(void *data)
{
    pl_buffers_destroy(*(pl_buffers **)data);
    free(data);
}

pl_buffers *pl_data_buffers(const pl_case *c) { return c->data; }
pl_buffers *pl_first_buffers(const pl_case *c) { return *(pl_buffers **)c->data; }

static pl_buffers *buffers_of(const pl_case *c) { return c->kernel->buffers ? c->kernel->buffers(c) : NULL; }

/* Anew for each variant, so that the right one is blamed. */
void pl_set_guards(const pl_case *c)
{
    if (c->kernel->arrays)
        pl_arrays_set_guards(c->data);
    else if (buffers_of(c))
        pl_buffers_set_guards(buffers_of(c));
}

bool pl_guards_intact(const pl_case *c)
{
    return c->kernel->arrays ? pl_arrays_guards_intact(c->data) : !buffers_of(c) || pl_buffers_guards_intact(buffers_of(c));
}

const void *pl_extent(const pl_case *c, size_t *bytes)
{
    const pl_buffers *const set = buffers_of(c);
    int largest = 0;
    if (c->kernel->where)
        return c->kernel->where(c, bytes);
    if (c->kernel->arrays)
        return pl_arrays_extent(c->data, bytes);
    for (int i = 1; set && i < set->count; i++)
        largest = set->bytes[i] > set->bytes[largest] ? i : largest;
    *bytes = set ? set->bytes[largest] : 0;
    return set ? set->at[largest] : NULL;
}
