/* Layouts in normal form: as few and as regular loops as their description allows.
 *
 * A contiguous block that repeats at its own length is one block; two loops of which the outer one continues the inner
 * are one loop; parts that are alike and evenly spaced are a loop, parts that are alike are a loop with a table. */
#include <stdlib.h>
#include <string.h>

#include "pack.h"

/* --- memory ------------------------------------------------------------------------------------------------------ */

struct pack_chunk { struct pack_chunk *next; size_t used, size; max_align_t at[]; };

void *pack_arena_get(pack_arena *arena, size_t bytes)
{
    enum { CHUNK = 4096 };
    bytes = (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    struct pack_chunk *chunk = arena->chunks;
    if (!chunk || chunk->size - chunk->used < bytes) {
        const size_t size = bytes > CHUNK ? bytes : CHUNK;
        if (arena->exhausted || arena->used + size > arena->allowed || !(chunk = malloc(sizeof *chunk + size))) {
            arena->exhausted = true;
            return NULL;
        }
        *chunk = (struct pack_chunk){.next = arena->chunks, .size = size};
        arena->chunks = chunk;
        arena->used += size;
    }
    void *got = (char *)chunk->at + chunk->used;
    chunk->used += bytes;
    return got;
}

void pack_arena_free(pack_arena *arena)
{
    while (arena->chunks) {
        struct pack_chunk *next = arena->chunks->next;
        free(arena->chunks);
        arena->chunks = next;
    }
}

/* --- nodes ------------------------------------------------------------------------------------------------------- */

static const pack_part nothing;

static pack_part made(pack_arena *arena, ptrdiff_t offset, const pack_node *node)
{
    pack_node *kept = pack_arena_get(arena, sizeof *kept);
    if (!kept)
        return nothing;
    *kept = *node;
    return (pack_part){offset, kept};
}

pack_part pack_block(pack_arena *arena, size_t bytes)
{
    return bytes ? made(arena, 0, &(pack_node){.kind = PACK_NEST, .bytes = bytes, .block = bytes}) : nothing;
}

static bool is_block(const pack_node *node) { return node->kind == PACK_NEST && !node->dims; }

/* `body` within one more loop. */
static pack_part surrounded(pack_arena *arena, pack_part body, pack_dim outer)
{
    pack_node node = *body.node;
    memmove(node.dim + 1, node.dim, (size_t)node.dims++ * sizeof *node.dim);
    node.dim[0] = outer;
    node.bytes *= outer.n;
    return made(arena, body.offset, &node);
}

pack_part pack_loop(pack_arena *arena, pack_part body, size_t n, ptrdiff_t step)
{
    if (!body.node || n == 0)
        return nothing;
    if (n == 1)
        return body;
    pack_node node = *body.node;
    node.bytes *= n;
    if (node.kind != PACK_NEST || node.dims == PACK_DIMS)
        return made(arena, 0, &(pack_node){.kind = PACK_LOOP, .bytes = node.bytes, .count = n, .step = step, .body = body});
    if (is_block(body.node) && step == (ptrdiff_t)node.block) {
        node.block *= n;
        return made(arena, body.offset, &node);
    }
    if (node.dims && !node.dim[0].at && step == (ptrdiff_t)node.dim[0].n * node.dim[0].step) {
        node.dim[0].n *= n;
        return made(arena, body.offset, &node);
    }
    return surrounded(arena, body, (pack_dim){.n = n, .step = step, .packed = body.node->bytes});
}

static bool alike(const pack_node *a, const pack_node *b)
{
    if (a == b)
        return true;
    if (a->kind != PACK_NEST || b->kind != PACK_NEST || a->dims != b->dims || a->block != b->block)
        return false;
    for (int k = 0; k < a->dims; k++)
        if (a->dim[k].n != b->dim[k].n || a->dim[k].step != b->dim[k].step || a->dim[k].at != b->dim[k].at)
            return false;
    return true;
}

/* Parts without those that are empty, and with neighbours joined. */
static size_t joined(pack_arena *arena, pack_part *parts, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0, next; i < n; i = next) {
        next = i + 1;
        if (!parts[i].node)
            continue;
        pack_part part = parts[i];
        if (is_block(part.node)) {
            size_t bytes = part.node->bytes;
            for (; next < n && (!parts[next].node || (is_block(parts[next].node)
                                                      && parts[next].offset == part.offset + (ptrdiff_t)bytes)); next++)
                bytes += parts[next].node ? parts[next].node->bytes : 0;
            if (bytes != part.node->bytes) {
                part = pack_block(arena, bytes);
                part.offset = parts[i].offset;
                if (!part.node)
                    return 0;
            }
        }
        parts[kept++] = part;
    }
    return kept;
}

/* The parts of those that are lists themselves stand in their place. */
static pack_part *opened(pack_arena *arena, pack_part *parts, size_t *n)
{
    size_t all = 0;
    for (size_t i = 0; i < *n; i++)
        all += parts[i].node && parts[i].node->kind == PACK_LIST ? parts[i].node->count : 1;
    if (all == *n)
        return parts;
    pack_part *open = pack_arena_get(arena, all * sizeof *open);
    if (!open)
        return NULL;
    size_t k = 0;
    for (size_t i = 0; i < *n; i++)
        if (parts[i].node && parts[i].node->kind == PACK_LIST)
            for (size_t j = 0; j < parts[i].node->count; j++)
                open[k++] = (pack_part){parts[i].offset + parts[i].node->part[j].offset, parts[i].node->part[j].node};
        else
            open[k++] = parts[i];
    *n = all;
    return open;
}

static pack_part alike_parts(pack_arena *arena, const pack_part *parts, size_t n)
{
    const ptrdiff_t step = parts[1].offset - parts[0].offset;
    size_t even = 2;
    while (even < n && parts[even].offset - parts[even - 1].offset == step)
        even++;
    if (even == n)
        return pack_loop(arena, parts[0], n, step);
    ptrdiff_t *at = pack_arena_get(arena, n * sizeof *at), least = 0, most = 0;
    if (!at)
        return nothing;
    for (size_t i = 0; i < n; i++) {
        at[i] = parts[i].offset - parts[0].offset;
        least = at[i] < least ? at[i] : least;
        most = at[i] > most ? at[i] : most;
    }
    return surrounded(arena, parts[0], (pack_dim){ .n = n, .step = (most - least) / (ptrdiff_t)(n - 1), .at = at,
                                                   .packed = parts[0].node->bytes });
}

pack_part pack_list(pack_arena *arena, pack_part *parts, size_t n)
{
    parts = opened(arena, parts, &n);
    if (!parts || !(n = joined(arena, parts, n)))
        return nothing;
    if (n == 1)
        return parts[0];
    size_t same = 1;
    while (same < n && alike(parts[0].node, parts[same].node))
        same++;
    if (same == n && parts[0].node->kind == PACK_NEST && parts[0].node->dims < PACK_DIMS)
        return alike_parts(arena, parts, n);

    pack_node list = {.kind = PACK_LIST, .count = n};
    pack_part *kept = pack_arena_get(arena, n * sizeof *kept);
    size_t *packed = pack_arena_get(arena, n * sizeof *packed);
    if (!kept || !packed)
        return nothing;
    for (size_t i = 0; i < n; i++) {
        kept[i] = parts[i];
        packed[i] = list.bytes;
        list.bytes += parts[i].node->bytes;
    }
    list.part = kept;
    list.packed = packed;
    return made(arena, 0, &list);
}
