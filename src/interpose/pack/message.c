/* Which messages are packed here.  Byna, Gropp, Sun, Thakur 2003, section 5.2.
 *
 * Packing in the order of the type map goes through user memory loop by loop.  Where an outer loop makes smaller steps than
 * the loops inside it, the inner ones come back to the same pages and lines again and again.  R_p is the number of pages
 * that the inner loops visit in between: as long as it is below the T_p entries of the TLB, the pages are still mapped
 * when they are met again, and there is nothing to be gained.  From T_p on, the loops are interchanged and blocked. */
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>

#include "pack.h"
#include "plumbline_pack.h"

static const char *const reason_text[PACK_REASONS] = {
    [PACK_SMALL] = "small", [PACK_CONTIGUOUS] = "contiguous", [PACK_IN_ORDER] = "in order",
    [PACK_FEW_PAGES] = "R_p below T_p", [PACK_LONG_BLOCKS] = "long blocks", [PACK_IN_CACHE] = "received within a cache",
    [PACK_UNKNOWN] = "type not understood", [PACK_MIXED] = "elements of several lengths", [PACK_LARGE] = "2 GiB or more",
    [PACK_NO_MEMORY] = "no memory left",
};
static _Atomic unsigned long messages[2][PACK_REASONS];

static size_t distance(const pack_dim *dim) { return (size_t)(dim->step < 0 ? -dim->step : dim->step); }

/* R_p of one loop: n blocks of W bytes, S bytes apart, on pages of P_s bytes. */
static double pages_of_loop(size_t n, size_t stride, size_t block)
{
    const size_t page = pack_set.page;
    if (stride == 0)
        return 1;
    return page >= stride ? (double)n / (double)(page / stride) : (double)n * (double)((block + page - 1) / page);
}

/* Lines, a stride apart, that the first cache holds: those that fall on the same place displace each other. */
static size_t lines_held(size_t stride)
{
    enum { WAY = 4096 };        /* bytes of a way: as many as a page of x86 has, so that address translation can wait */
    size_t a = stride % WAY, b = WAY;
    while (a) {                 /* the greatest common divisor of both */
        const size_t rest = b % a;
        b = a;
        a = rest;
    }
    const size_t places = WAY / (b < PACK_LINE ? PACK_LINE : b);
    return pack_set.first_cache / WAY * places;
}

/* A receive is worth it less often: MPI puts what has come in place while it is still in a cache. */
static bool worth_receiving(size_t lines, size_t stride, size_t block)
{
    if (stride < PACK_LINE)     /* what a pass touches is dense */
        return false;
    return block <= sizeof(double) || lines > lines_held(stride);
}

static pack_reason judge_nest(const pack_node *nest, pack_side side)
{
    enum { LONGEST = 16 };      /* blocks that make up a good part of a line are not worth a copy */
    if (!nest->dims)
        return PACK_CONTIGUOUS;
    const pack_dim *last = &nest->dim[nest->dims - 1], *nearest = last;
    for (const pack_dim *dim = nest->dim; dim < last; dim++)
        if (dim->n > 1 && distance(dim) < distance(nearest))
            nearest = dim;
    if (nearest == last)
        return PACK_IN_ORDER;
    if (nest->block > LONGEST)
        return PACK_LONG_BLOCKS;
    double pages = pages_of_loop(last->n, distance(last), nest->block);
    size_t lines = last->n;
    for (const pack_dim *dim = nearest + 1; dim < last; dim++)
        if (distance(dim) >= distance(last)) {
            pages *= (double)dim->n;
            lines *= dim->n;
        }
    if (pages < (double)pack_set.tlb)
        return PACK_FEW_PAGES;
    return side == PACK_SEND || worth_receiving(lines, distance(last), nest->block) ? PACK_DONE : PACK_IN_CACHE;
}

/* A list is packed here if that is worth while for at least half of its bytes. */
static pack_reason judge(const pack_node *node, pack_side side)
{
    if (node->kind == PACK_NEST)
        return judge_nest(node, side);
    if (node->kind == PACK_LOOP)
        return judge(node->body.node, side);
    size_t gain = 0;
    pack_reason reason = PACK_IN_ORDER;
    for (size_t i = 0; i < node->count; i++) {
        const pack_reason found = judge(node->part[i].node, side);
        if (found == PACK_DONE)
            gain += node->part[i].node->bytes;
        else if (found == PACK_FEW_PAGES)
            reason = found;
    }
    return gain >= node->bytes / 2 ? PACK_DONE : reason;
}

/* `count` items of the layout: a node that is made for the moment. */
static const pack_node *items(const pack_layout *layout, int count, pack_node *made)
{
    const pack_node *one = layout->whole.node;
    if (count == 1)
        return one;
    if (one->kind != PACK_NEST) {
        *made = (pack_node){ .kind = PACK_LOOP, .bytes = one->bytes * (size_t)count, .count = (size_t)count,
                             .step = layout->extent, .body = { 0, one } };
        return made;
    }
    *made = *one;
    made->bytes *= (size_t)count;
    pack_dim *first = &made->dim[0];
    if (!made->dims && layout->extent == (ptrdiff_t)made->block)
        made->block *= (size_t)count;
    else if (made->dims && !first->at && layout->extent == (ptrdiff_t)first->n * first->step)
        first->n *= (size_t)count;
    else {
        for (int k = made->dims++; k > 0; k--)
            made->dim[k] = made->dim[k - 1];
        *first = (pack_dim){.n = (size_t)count, .step = layout->extent, .packed = one->bytes};
    }
    return made;
}

/* An MPI may cut a message anywhere when it travels as bytes, also within an element; MPICH 4.0 then complains of a
 * truncated message where the receiver has it put in place by its datatype.  Elements that are all of one length, a power of
 * two, are not cut in practice; all others go to the MPI. */
static pack_reason reason_for(pack_message *m, pack_side side, MPI_Datatype type, int size)
{
    const size_t bytes = (size_t)size * (size_t)m->count;
    if (bytes < pack_set.least || size < 0)     /* size unknown: MPI_UNDEFINED, beyond int */
        return size < 0 ? PACK_LARGE : PACK_SMALL;
    if (bytes > INT_MAX)
        return PACK_LARGE;
    m->bytes = (int)bytes;
    m->layout = pack_layout_of(type);
    if (!m->layout)
        return PACK_NO_MEMORY;
    if (!m->layout->understood || !m->layout->whole.node || m->layout->whole.node->bytes != (size_t)size)
        return PACK_UNKNOWN;
    if (m->layout->arena.mixed)
        return PACK_MIXED;
    pack_node made;
    const pack_reason reason = judge(items(m->layout, m->count, &made), side);
    if (reason == PACK_DONE && !(m->buffer = pack_pool_get(bytes)))
        return PACK_NO_MEMORY;
    return reason;
}

/* A locked instruction would cost as much as a tenth of a short message. */
static void counted(pack_side side, pack_reason reason)
{
    _Atomic unsigned long *n = &messages[side][reason];
    if (pack_threaded)
        atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
    else
        atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1, memory_order_relaxed);
}

bool pack_wanted(pack_message *m, pack_side side, const void *user, int count, MPI_Datatype type, int peer)
{
    /* What is not right is MPI's to complain of. */
    if (!pack_active || count <= 0 || peer == MPI_PROC_NULL || type == MPI_DATATYPE_NULL)
        return false;
    if (pack_is_plain(type)) {
        counted(side, PACK_CONTIGUOUS);
        return false;
    }
    int size;
    if (PMPI_Type_size(type, &size) != MPI_SUCCESS)
        return false;
    *m = (pack_message){.user = (char *)(uintptr_t)user, .count = count};
    const pack_reason reason = reason_for(m, side, type, size);
    if (reason != PACK_DONE && m->layout)
        pack_layout_release(m->layout);
    counted(side, reason);
    return reason == PACK_DONE;
}

void pack_message_done(pack_message *m)
{
    pack_pool_put(m->buffer);
    pack_layout_release(m->layout);
}

static void move(const pack_message *m, void *packed, size_t bytes, bool unpack)
{
    pack_node made;
    char *first = (char *)((uintptr_t)m->user + (uintptr_t)m->layout->whole.offset);    /* user may be MPI_BOTTOM */
    pack_move(items(m->layout, m->count, &made), first, packed, bytes, unpack);
}

void pack_gather(const pack_message *m) { move(m, m->buffer->at, (size_t)m->bytes, false); }

void pack_scatter(const pack_message *m, size_t bytes)
{
    move(m, m->buffer->at, bytes < (size_t)m->bytes ? bytes : (size_t)m->bytes, true);
}

/* --- for those who measure --------------------------------------------------------------------------------------- */

/* Bytes that were moved, -1 where MPI's own functions have to do it. */
static int alone(void *user, int count, MPI_Datatype type, void *packed, bool unpack)
{
    pack_message m = {.user = user, .count = count};
    int size;
    if (!pack_active || count < 0 || PMPI_Type_size(type, &size) != MPI_SUCCESS || size < 0
        || (size_t)size * (size_t)count > INT_MAX)
        return -1;
    if (size == 0 || count == 0)
        return 0;
    m.bytes = size * count;
    if (!(m.layout = pack_layout_of(type)))
        return -1;
    const bool can = m.layout->understood && m.layout->whole.node && m.layout->whole.node->bytes == (size_t)size;
    if (can)
        move(&m, packed, (size_t)m.bytes, unpack);
    pack_layout_release(m.layout);
    return can ? m.bytes : -1;
}

int plumbline_pack(const void *user, int count, MPI_Datatype type, void *packed)
{
    return alone((void *)(uintptr_t)user, count, type, packed, false);
}

int plumbline_unpack(const void *packed, void *user, int count, MPI_Datatype type)
{
    return alone(user, count, type, (void *)(uintptr_t)packed, true);
}

/* --- report ------------------------------------------------------------------------------------------------------ */

void pack_report(int rank)
{
    char line[600];
    int used = snprintf(line, sizeof line, "plumbline: rank %d:", rank);
    for (int side = 0; side < 2; side++) {
        const unsigned long packed = messages[side][PACK_DONE];
        unsigned long passed = 0;
        for (int k = PACK_DONE + 1; k < PACK_REASONS; k++)
            passed += messages[side][k];
        used += snprintf(line + used, sizeof line - (size_t)used, "%s %lu %s packed here, %lu passed on", side ? ";" : "",
                         packed, side == PACK_SEND ? "sends" : "receives", passed);
        for (int k = PACK_DONE + 1, n = 0; k < PACK_REASONS; k++)
            if (messages[side][k])
                used += snprintf(line + used, sizeof line - (size_t)used, "%s%lu %s", n++ ? ", " : " (",
                                 messages[side][k], reason_text[k]);
        used += snprintf(line + used, sizeof line - (size_t)used, "%s", passed ? ")" : "");
    }
    fprintf(stderr, "%s\n", line);
}
