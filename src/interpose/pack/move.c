/* Packs and unpacks a layout.  Its loops may be run in any order: each element has its own place on either side.
 *
 * Of the loops of a nest, two matter: the one that makes the smallest steps in user memory, x, and the innermost, y, which
 * makes them in the packed buffer.  Where they are the same, the order of the type map is a good one.  Where they differ,
 * the two make a plane that is transposed, in tiles. */
#include <string.h>

#include "pack.h"

static size_t distance(const pack_dim *dim) { return (size_t)(dim->step < 0 ? -dim->step : dim->step); }
INLINE ptrdiff_t user_offset(const pack_dim *dim, size_t i) { return dim->at ? dim->at[i] : (ptrdiff_t)i * dim->step; }
INLINE char *moved(char *p, ptrdiff_t offset) { return (char *)((uintptr_t)p + (uintptr_t)offset); }

INLINE void copy(char *user, char *packed, size_t block, bool unpack)
{
    memcpy(unpack ? user : packed, unpack ? packed : user, block);
}

/* --- one loop, and two --------------------------------------------------------------------------------------------- */

INLINE void strip_of(const pack_dim *y, size_t first, size_t end, size_t block, char *user, char *packed, bool unpack)
{
    if (y->at)
        for (size_t i = first; i < end; i++)
            copy(moved(user, y->at[i]), packed + i * block, block, unpack);
    else
        for (size_t i = first; i < end; i++)
            copy(moved(user, (ptrdiff_t)i * y->step), packed + i * block, block, unpack);
}

/* Iterations first..end-1 of the innermost loop; blocks of the usual lengths are moved without a call. */
static void strip(const pack_dim *y, size_t first, size_t end, size_t block, char *user, char *packed, bool unpack)
{
    switch (block) {
#define CASE(b) case b: unpack ? strip_of(y, first, end, b, user, packed, true) \
                               : strip_of(y, first, end, b, user, packed, false); break;
    CASE(1) CASE(2) CASE(4) CASE(8) CASE(12) CASE(16) CASE(24) CASE(32) CASE(64)
#undef CASE
    default: strip_of(y, first, end, block, user, packed, unpack);
    }
}

static void plane(const pack_dim *x, const pack_dim *y, size_t block, char *user, char *packed, bool unpack)
{
    enum { HEIGHT = 32 };
    if (!x->at && x->step == (ptrdiff_t)block) {
        const pack_rows there = {user, y->step, y->at}, here = {packed, (ptrdiff_t)x->packed, NULL};
        const bool bypass = x->n * y->n * block > pack_set.cache;
        if (unpack ? pack_transpose(block, &here, x->n, &there, y->n, bypass)
                   : pack_transpose(block, &there, y->n, &here, x->n, bypass))
            return;
    }
    for (size_t first = 0; first < y->n; first += HEIGHT)
        for (size_t j = 0; j < x->n; j++)
            strip(y, first, least(first + HEIGHT, y->n), block, moved(user, user_offset(x, j)), packed + j * x->packed,
                  unpack);
}

/* --- a nest of loops ----------------------------------------------------------------------------------------------- */

static void nest(const pack_dim *dim, int dims, size_t block, char *user, char *packed, bool unpack)
{
    if (!dims) {
        copy(user, packed, block, unpack);
        return;
    }
    const pack_dim *y = &dim[dims - 1], *x = y, *outer[PACK_DIMS + 1];
    for (const pack_dim *d = dim; d < y; d++)
        if (d->n > 1 && distance(d) < distance(x))
            x = d;
    int outers = 0;
    for (const pack_dim *d = dim; d < y; d++)
        if (d != x)
            outer[outers++] = d;

    size_t at[PACK_DIMS + 1] = {0};
    for (;;) {
        ptrdiff_t there = 0;
        size_t here = 0;
        for (int k = 0; k < outers; k++) {
            there += user_offset(outer[k], at[k]);
            here += at[k] * outer[k]->packed;
        }
        if (x == y)
            strip(y, 0, y->n, block, moved(user, there), packed + here, unpack);
        else
            plane(x, y, block, moved(user, there), packed + here, unpack);
        int k = outers - 1;
        while (k >= 0 && ++at[k] == outer[k]->n)
            at[k--] = 0;
        if (k < 0)
            return;
    }
}

/* The first bytes of a nest: whole iterations of the outermost loop, then what is left of the next one. */
static void part_of_nest(const pack_dim *dim, int dims, size_t block, char *user, char *packed, size_t bytes, bool unpack)
{
    if (!dims) {
        copy(user, packed, bytes, unpack);
        return;
    }
    pack_dim whole[PACK_DIMS + 1];
    memcpy(whole, dim, (size_t)dims * sizeof *dim);
    whole[0].n = bytes / dim->packed;
    if (whole[0].n)
        nest(whole, dims, block, user, packed, unpack);
    if (bytes % dim->packed)
        part_of_nest(dim + 1, dims - 1, block, moved(user, user_offset(dim, whole[0].n)), packed + whole[0].n * dim->packed,
                     bytes % dim->packed, unpack);
}

void pack_move(const pack_node *node, char *user, char *packed, size_t bytes, bool unpack)
{
    if (node->kind == PACK_NEST) {
        if (bytes == node->bytes)
            nest(node->dim, node->dims, node->block, user, packed, unpack);
        else if (bytes)
            part_of_nest(node->dim, node->dims, node->block, user, packed, bytes, unpack);
    } else if (node->kind == PACK_LOOP) {
        const size_t body = node->body.node->bytes;
        for (size_t i = 0; i < node->count && i * body < bytes; i++)
            pack_move(node->body.node, moved(user, (ptrdiff_t)i * node->step + node->body.offset), packed + i * body,
                      least(body, bytes - i * body), unpack);
    } else
        for (size_t i = 0; i < node->count && node->packed[i] < bytes; i++)
            pack_move(node->part[i].node, moved(user, node->part[i].offset), packed + node->packed[i],
                      least(node->part[i].node->bytes, bytes - node->packed[i]), unpack);
}
