/* The data of a pattern: the arrays and lists, in the order that a variant takes the indices. */
#include <stdlib.h>
#include <string.h>

#include "pattern_data.h"

const gather_pattern *gather_pattern_of(const pl_case *c)
{
    if (!c->text[0])
        pl_fail("--pattern is missing: give a file of patterns");
    const gather_patterns *all = gather_read_patterns(c->text[0]);
    if (c->parameters[GATHER_CONFIG] > all->count)
        pl_fail("--config %ld: %s has %d patterns: choose one of them", c->parameters[GATHER_CONFIG], c->text[0], all->count);
    return &all->pattern[c->parameters[GATHER_CONFIG] - 1];
}

typedef struct { size_t to, j; } place;

/* By place, equal ones in their order: the last store to a place must stay the last. */
static int by_place(const void *a, const void *b)
{
    const place *x = a, *y = b;
    return x->to != y->to ? (x->to > y->to) - (x->to < y->to) : (x->j > y->j) - (x->j < y->j);
}

static size_t *order_of(const pl_case *c, const gather_pattern *p)
{
    size_t *order = pl_allocate(p->length * sizeof *order, "the order of a pattern");
    place *places = pl_allocate(p->length * sizeof *places, "the order of a pattern");
    for (size_t j = 0; j < p->length; j++)
        places[j] = (place){gather_is_sorted(c->variant) ? leads_to(p, j) : 0, j};
    qsort(places, p->length, sizeof *places, by_place);
    for (size_t j = 0; j < p->length; j++)
        order[j] = places[j].j;
    free(places);
    return order;
}

/* Where the j-th element of the first row is stored; of rows that are stored densely, each index has places of its own. */
static size_t stored_at(const gather_data *s, size_t j)
{
    return s->p->kind == GS ? (size_t)s->p->inner[s->order[j]] : leads_to(s->p, s->order[j]);
}

/* Where an index leads some rows later to the place of an index after it, the later store must stay the later one: fewer rows than
 * that at a time.  Long rows are left as they are. */
static size_t block_of(const gather_data *s)
{
    enum { BLOCK = 64, LONG_ROW = 256 };
    const size_t delta = s->p->kind == GS ? s->p->delta_to : s->p->delta, length = s->p->length;
    size_t block = length > LONG_ROW ? 1 : BLOCK;
    for (size_t j = 0; j < length && block > 1 && !writes_dense(s->p); j++)
        for (size_t k = 0; k < j; k++) {
            const size_t later = stored_at(s, j), sooner = stored_at(s, k);
            if (delta == 0 && later == sooner)
                block = 1;
            else if (delta > 0 && later > sooner && (later - sooner) % delta == 0 && (later - sooner) / delta < block)
                block = (later - sooner) / delta;
        }
    return block;
}

void *gather_data_create(const pl_case *c)
{
    gather_data *s = pl_allocate(sizeof *s, "the pattern");
    const gather_pattern *p = s->p = gather_pattern_of(c);
    const size_t bytes[BUFFERS] = {
        [READ] = sizeof(double) * p->read, [WRITTEN] = sizeof(double) * p->written,
        [DENSE] = sizeof(double) * dense_elements(p, (size_t)c->threads),
        [INDEX] = sizeof(int32_t) * p->indices, [INNER] = sizeof(int32_t) * (has_inner(p) ? p->length : 0)};
    s->buffers = pl_buffers_create(c, BUFFERS, bytes, NULL);
    s->order = order_of(c, p);
    s->block = block_of(s);
    return s;
}

void gather_data_destroy(void *data)
{
    free(((gather_data *)data)->order);
    pl_first_buffers_destroy(data);
}

int32_t gather_listed(const gather_data *s, int which, size_t j)
{
    const gather_pattern *p = s->p;
    if (which == INDEX)
        return p->index[is_multi(p) ? j : s->order[j]];
    return p->inner[s->order[j]];
}

/* Each element that is read tells where it came from, exactly, and only who has read it knows. */
void gather_data_touch(const pl_case *c, int thread, int threads)
{
    const gather_data *s = c->data;
    const gather_pattern *p = s->p;
    const pl_range read = pl_part(p->read, thread, threads), written = pl_part(p->written, thread, threads);
    for (size_t k = read.begin; k < read.end; k++)
        array(c, READ)[k] = pl_value(k);
    for (size_t k = written.begin; k < written.end; k++)
        array(c, WRITTEN)[k] = 0;
    if (has_dense(p) && is_shared(p)) {
        const pl_range part = pl_part(dense_elements(p, 1), thread, threads);
        memset(array(c, DENSE) + part.begin, 0, sizeof(double) * (part.end - part.begin));
    } else
        for (int t = thread; has_dense(p) && t < c->threads; t += threads)
            memset(dense(c, t), 0, sizeof(double) * dense_stride(p));
    for (size_t j = 0; thread == 0 && j < p->indices; j++)
        list(c, INDEX)[j] = gather_listed(s, INDEX, j);
    for (size_t j = 0; thread == 0 && has_inner(p) && j < p->length; j++)
        list(c, INNER)[j] = gather_listed(s, INNER, j);
}

gather_rows gather_rows_of(const pl_case *c, int thread)
{
    const gather_data *s = c->data;
    const gather_pattern *p = s->p;
    const pl_range part = pl_part(p->count, thread, c->threads);
    return (gather_rows){.first = part.begin, .last = part.end, .length = p->length, .delta = p->delta, .delta_to = p->delta_to,
                         .wrap = p->wrap, .block = s->block, .ahead = (size_t)c->parameters[GATHER_DISTANCE]};
}

void gather_run_rows(const pl_case *c, const gather_rows *r, int thread)
{
    const gather_pattern *p = ((const gather_data *)c->data)->p;
    gather_loop *const loop = gather_loop_of(c->variant, p->kind);
    const int32_t *const inner = has_inner(p) ? list(c, INNER) : NULL;
    if (p->kind == GS)
        loop(r, array(c, WRITTEN), array(c, READ), list(c, INDEX), inner);
    else if (writes_dense(p))
        loop(r, dense(c, thread), array(c, READ), list(c, INDEX), inner);
    else
        loop(r, array(c, WRITTEN), dense(c, thread), list(c, INDEX), inner);
}
