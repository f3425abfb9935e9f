/* Is what a pattern's loop left right?  What stands there is compared, element by element, with what the pattern says. */
#define _GNU_SOURCE /* mincore(), MAP_NORESERVE */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pattern_data.h"

/* Elements, and rows, that the same loop is given once more where it leaves nothing of some rows. */
enum { ELEMENTS = 1 << 16, ROWS = 64 };

static size_t rows_kept(const gather_pattern *p, const gather_rows *r)
{
    return pl_least(p->wrap, r->last - r->first);
}

/* What a scatter finds in the dense array. */
static double dense_value(const gather_pattern *p, size_t i, size_t j) { return pl_value(i % p->wrap * p->length + j); }

/* All that is written is made not a number; all that is read has its values: other variants have run. */
void gather_poison(const pl_case *c)
{
    const gather_pattern *p = ((const gather_data *)c->data)->p;
    gather_data_touch(c, 0, 1);
    if (p->written)
        memset(array(c, WRITTEN), 0xFF, sizeof(double) * p->written);
    if (writes_dense(p))
        memset(array(c, DENSE), 0xFF, sizeof(double) * dense_elements(p, (size_t)c->threads));
    for (int t = 0; has_dense(p) && !writes_dense(p) && t < (is_shared(p) ? 1 : c->threads); t++)
        for (size_t i = 0; i < dense_rows(p); i++)
            for (size_t j = 0; j < p->length; j++)
                dense(c, t)[i * p->length + j] = dense_value(p, i, j);
}

/* What is read only is as it was. */
static bool inputs_are_intact(const pl_case *c)
{
    const gather_data *s = c->data;
    const gather_pattern *p = s->p;
    bool intact = true;
    for (size_t j = 0; j < p->indices; j++)
        intact &= list(c, INDEX)[j] == gather_listed(s, INDEX, j);
    for (size_t j = 0; has_inner(p) && j < p->length; j++)
        intact &= list(c, INNER)[j] == gather_listed(s, INNER, j);
    for (size_t k = 0; k < p->read; k++)
        intact &= array(c, READ)[k] == pl_value(k);
    for (int t = 0; has_dense(p) && !writes_dense(p) && t < (is_shared(p) ? 1 : c->threads); t++)
        for (size_t i = 0; i < dense_rows(p); i++)
            for (size_t j = 0; j < p->length; j++)
                intact &= dense(c, t)[i * p->length + j] == dense_value(p, i, j);
    return intact;
}

/* A row of a gather: element j is what stands where the pattern's index leads to. */
static double error_of_row(const pl_case *c, const double *row, size_t i)
{
    const gather_data *s = c->data;
    const gather_pattern *p = s->p;
    double worst = 0;
    for (size_t j = 0; j < p->length; j++)
        worst = pl_worse(worst, fabs(row[j] - pl_value(leads_to(p, s->order[j]) + p->delta * i)));
    return worst;
}

/* The last rows, so many of them, where they stand. */
static double error_of_rows(const pl_case *c, const gather_rows *r, const double *rows, size_t kept)
{
    double worst = 0;
    for (size_t i = r->last - kept; i < r->last; i++)
        worst = pl_worse(worst, error_of_row(c, rows + i % r->wrap * r->length, i));
    return worst;
}

static size_t count_numbers(const double *x, size_t elements)
{
    size_t numbers = 0;
    for (size_t k = 0; k < elements; k++)
        numbers += !isnan(x[k]);
    return numbers;
}

/* Rows that are overwritten are done again, by the same loop, in an array in which as many at a time have places of their own; one place more
 * stays empty, and a line on either side. */
static double verify_overwritten(const pl_case *c, gather_rows r)
{
    enum { GUARD = PL_LINE / sizeof(double) };
    const gather_pattern *p = ((const gather_data *)c->data)->p;
    const size_t last = r.last, most = 1 + ELEMENTS / r.length, elements = (most + 1) * r.length + 2 * (size_t)GUARD;
    double *const x = pl_allocate(elements * sizeof *x, "the verification"), worst = 0;
    r.wrap = most + 1;
    for (; r.first < last; r.first = r.last) {
        const size_t rows = pl_least(last - r.first, most);
        r.last = r.first + rows;
        memset(x, 0xFF, elements * sizeof *x);
        gather_loop_of(c->variant, p->kind)(&r, x + GUARD, array(c, READ), list(c, INDEX), has_inner(p) ? list(c, INNER) : NULL);
        worst = pl_worse(worst, error_of_rows(c, &r, x + GUARD, rows));
        if (count_numbers(x, elements) != rows * r.length)
            worst = pl_worse(worst, INFINITY);
    }
    free(x);
    return worst;
}

/* Of which nothing is in memory before it is accessed: a page at a time. */
static double *map(size_t elements)
{
    double *const at = mmap(NULL, elements * sizeof *at, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        pl_fail("no memory for the verification of a pattern: %.1f GB", (double)elements * sizeof *at / 1e9);
    madvise(at, elements * sizeof *at, MADV_NOHUGEPAGE);
    return at;
}

/* Whether its page is in memory; yes where the system does not say. */
static bool was_accessed(const double *x)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char there = 1;
    mincore((void *)((uintptr_t)x / page * page), 1, &there);
    return there & 1;
}

/* Where the j-th element of a row is stored in a sparse array. */
static size_t stored_at(const gather_pattern *p, size_t j) { return p->kind == GS ? (size_t)p->inner[j] : leads_to(p, j); }

/* Elements of a sparse array that a row lies in. */
static size_t extent(const gather_pattern *p, size_t (*at)(const gather_pattern *, size_t))
{
    size_t most = 0;
    for (size_t j = 0; j < p->length; j++)
        most = at(p, j) > most ? at(p, j) : most;
    return most + 1;
}

static size_t few_rows(size_t length) { return pl_least(ROWS, 1 + ELEMENTS / length); }

/* Of rows that later ones overwrite the results tell nothing, and a loop might ask for them and leave them out.  But what it has read is known:
 * rows lie on pages of their own, or as many on a page as fit of dense ones, and each of these pages must have been accessed. */
static bool reads_what_is_overwritten(const pl_case *c)
{
    const gather_data *s = c->data;
    const gather_pattern *p = s->p;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE) / sizeof(double), step = p->kind == GS ? p->delta_to : p->delta;
    gather_rows r = gather_rows_of(c, 0);
    size_t apart = r.length;
    r.first = 0;
    if (p->read) {
        apart = r.delta = (extent(p, leads_to) + page - 1) / page * page;
        r.wrap = pl_least(r.wrap, few_rows(r.length));
        r.last = r.wrap + few_rows(r.length);
    } else
        r.last = r.wrap = 2 + 4 * page / r.length;
    if (p->written && step)
        r.last = pl_least(r.last, p->count);
    const size_t read = apart * r.last, stored = p->written ? step * (r.last - 1) + extent(p, stored_at) : r.wrap * r.length;
    double *const from = map(read), *const to = map(stored);
    bool all = true;
    gather_loop_of(c->variant, p->kind)(&r, to, from, list(c, INDEX), has_inner(p) ? list(c, INNER) : NULL);
    for (size_t i = 0; i < r.last; i++)
        for (size_t j = 0; j < r.length; j += 1 + r.length / ROWS)
            all &= was_accessed(from + apart * i + (p->read ? leads_to(p, s->order[j]) : j));
    munmap(from, read * sizeof *from);
    munmap(to, stored * sizeof *to);
    return all;
}

static double verify_gather(const pl_case *c)
{
    const gather_pattern *p = ((const gather_data *)c->data)->p;
    double worst = 0;
    size_t expected = 0;
    bool overwritten = false;
    for (int t = 0; t < c->threads; t++) {
        const gather_rows r = gather_rows_of(c, t);
        const size_t kept = rows_kept(p, &r);
        worst = pl_worse(worst, error_of_rows(c, &r, dense(c, t), kept));
        if (kept < r.last - r.first) {
            worst = pl_worse(worst, verify_overwritten(c, r));
            overwritten = true;
        }
        expected += kept * p->length;
    }
    if (count_numbers(array(c, DENSE), dense_elements(p, (size_t)c->threads)) != expected)
        worst = pl_worse(worst, INFINITY);
    return overwritten && worst == 0 && !reads_what_is_overwritten(c) ? INFINITY : worst;
}

static bool take(uint64_t *bits, size_t k)
{
    const bool was = bits[k / 64] >> k % 64 & 1;
    bits[k / 64] |= (uint64_t)1 << k % 64;
    return was;
}

/* Some rows are stored again, by the same loop, each to places of its own.  What has been compared is made not a number: of several stores of a
 * row to one place the last one counts. */
static double verify_stored_apart(const pl_case *c)
{
    const gather_data *s = c->data;
    const gather_pattern *p = s->p;
    const size_t apart = extent(p, stored_at);
    gather_rows r = gather_rows_of(c, 0);
    r.first = 0;
    r.last = r.wrap = pl_least(p->count, 1 + few_rows(r.length));
    *(p->kind == GS ? &r.delta_to : &r.delta) = apart;
    double *const to = map(apart * r.last), *const rows = map(r.last * r.length), worst = 0;
    for (size_t k = 0; k < r.last * r.length; k++)
        rows[k] = pl_value(k);
    gather_loop_of(c->variant, p->kind)(&r, to, p->read ? array(c, READ) : rows, list(c, INDEX), has_inner(p) ? list(c, INNER) : NULL);
    for (size_t i = 0; i < r.last; i++)
        for (size_t j = r.length; j-- > 0;) {
            double *const x = to + apart * i + stored_at(p, s->order[j]);
            if (!isnan(*x))
                worst = pl_worse(worst, fabs(*x - (p->read ? pl_value(leads_to(p, s->order[j]) + p->delta * i) : rows[i * r.length + j])));
            *x = NAN;
        }
    munmap(to, apart * r.last * sizeof *to);
    munmap(rows, r.last * r.length * sizeof *rows);
    return worst;
}

/* Several stores may go to one place: there stands the last one of a thread, and where the rows of threads overlap, that
 * of any of them.  From the last row backwards, the first store to a place that a thread has is its last one. */
static double verify_scatter(const pl_case *c)
{
    const gather_data *s = c->data;
    const gather_pattern *p = s->p;
    const double *a = array(c, WRITTEN);
    const size_t words = p->written / 64 + 1, delta = p->kind == GS ? p->delta_to : p->delta;
    uint64_t *const right = pl_allocate(words * sizeof *right, "the verification");
    uint64_t *const visited = pl_allocate(words * sizeof *visited, "the verification");
    uint64_t *const stored = pl_allocate(words * sizeof *stored, "the verification");
    double worst = 0;
    bool overwritten = false;
    for (int t = 0; t < c->threads; t++) {
        const gather_rows r = gather_rows_of(c, t);
        memset(visited, 0, words * sizeof *visited);
        for (size_t i = r.last; i-- > r.first;)
            for (size_t j = p->length; j-- > 0;) {
                const size_t o = s->order[j], k = stored_at(p, o) + delta * i;
                const double value = p->kind == GS ? pl_value(leads_to(p, o) + p->delta * i) : dense_value(p, i, j);
                if (take(visited, k)) {
                    overwritten = true;
                    continue;
                }
                take(stored, k);
                if (a[k] == value)
                    take(right, k);
            }
    }
    for (size_t k = 0; k < p->written && isfinite(worst); k++)
        if (take(stored, k) != !isnan(a[k]))
            worst = isnan(a[k]) ? NAN : INFINITY;
        else if (!isnan(a[k]) && !take(right, k))
            worst = INFINITY;
    free(right);
    free(visited);
    free(stored);
    return overwritten && worst == 0 ? (reads_what_is_overwritten(c) ? verify_stored_apart(c) : INFINITY) : worst;
}

double gather_verify(const pl_case *c)
{
    const gather_pattern *p = ((const gather_data *)c->data)->p;
    const double error = writes_dense(p) ? verify_gather(c) : verify_scatter(c);
    return inputs_are_intact(c) ? error : pl_worse(error, INFINITY);
}
