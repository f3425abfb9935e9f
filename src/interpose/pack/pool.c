/* Buffers that are kept and used again, the last one first: its pages are there, and its lines may still be in a cache.
 * Large ones lie on huge pages where the system gives them: a row of a packed matrix is then no page of its own.
 * All of them together never take more than PLUMBLINE_PACK_MEMORY. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "pack.h"

enum { SMALL = 64 << 10, HUGE_PAGE = 2 << 20 };

static pack_buffer *unused;                 /* the last one first */
static size_t held;                         /* bytes of all, used or not */

static char *map(size_t bytes)
{
    const size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : SMALL;
    char *base = mmap(NULL, bytes + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    char *at = (char *)(((uintptr_t)base + align - 1) / align * align);
    if (at > base)
        munmap(base, (size_t)(at - base));
    if (at < base + align)
        munmap(at + bytes, (size_t)(base + align - at));
    if (align == HUGE_PAGE)
        madvise(at, bytes, MADV_HUGEPAGE);      /* a wish: without it the buffer is as good, but slower */
    return at;
}

static void drop_unused(void)
{
    pack_buffer *b = unused;
    unused = b->next;
    munmap(b->at, b->bytes);
    held -= b->bytes;
    free(b);
}

static pack_buffer *fresh(size_t bytes)
{
    while (held + bytes > pack_set.memory && unused)
        drop_unused();
    pack_buffer *b = held + bytes <= pack_set.memory ? malloc(sizeof *b) : NULL;
    if (!b)
        return NULL;
    *b = (pack_buffer){.at = map(bytes), .bytes = bytes};
    if (!b->at) {
        free(b);
        return NULL;
    }
    held += bytes;
    return b;
}

pack_buffer *pack_pool_get(size_t bytes)
{
    const size_t unit = bytes > HUGE_PAGE / 2 ? HUGE_PAGE : SMALL;
    bytes = (bytes + unit - 1) / unit * unit;
    pack_lock();
    pack_buffer **b = &unused, *got;
    while (*b && ((*b)->bytes < bytes || (*b)->bytes > 2 * bytes))      /* none that is far too large */
        b = &(*b)->next;
    if ((got = *b))
        *b = got->next;
    else
        got = fresh(bytes);
    pack_unlock();
    return got;
}

void pack_pool_put(pack_buffer *b)
{
    pack_lock();
    b->next = unused;
    unused = b;
    pack_unlock();
}

void pack_pool_stop(void)
{
    while (unused)
        drop_unused();
}
