/* The matrix before it is laid out: rows, SELL's order, the independent product; made once and kept. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "generator.h"
#include "kernel.h"

/* --- from a file ---------------------------------------------------------------------------------------------- */

static void count_element(const spmv_source *m, const spmv_element *e, int64_t *ptr)
{
    ptr[e->row + 1]++;
    if (m->mirrored && e->row != e->column)
        ptr[e->column + 1]++;
}

/* Rows of the elements, in the order of the file, to rows by column, in place: what has the same place is added. */
static void merge_rows(spmv_source *m)
{
    uint64_t *key = pl_allocate(2 * m->longest * sizeof *key, "the matrix");
    double *value = pl_allocate(m->longest * sizeof *value, "the matrix");
    int64_t out = 0, begin = 0;
    for (size_t row = 0; row < m->rows; row++) {
        const size_t n = (size_t)(m->ptr[row + 1] - begin);
        for (size_t k = 0; k < n; k++) {
            key[k] = (uint64_t)m->column[begin + (int64_t)k] << 32 | k;
            value[k] = m->value[begin + (int64_t)k];
        }
        spmv_sort(n, key, key + m->longest);
        begin = m->ptr[row + 1];
        const int64_t first = out;
        for (size_t k = 0; k < n; k++) {
            const int32_t j = (int32_t)(key[k] >> 32);
            if (out > first && m->column[out - 1] == j)
                m->value[out - 1] += value[key[k] & UINT32_MAX];
            else {
                m->column[out] = j;
                m->value[out++] = value[key[k] & UINT32_MAX];
            }
        }
        m->ptr[row + 1] = out;
    }
    free(key);
    free(value);
}

/* Whole numbers whose sums stay below 2^53 are summed without error; else each of the two sums of a row has an error of
 * at most (terms) * u * (sum of magnitudes), u = DBL_EPSILON / 2 (Higham 2002, section 3.1). */
static void bound_error(spmv_source *m)
{
    double *y = pl_allocate(m->rows * sizeof *y, "the matrix"), *sizes = pl_allocate(m->rows * sizeof *sizes, "the matrix");
    m->exact = true;
    for (size_t k = 0; k < m->elements; k++)
        m->exact &= m->element[k].value == rint(m->element[k].value);
    spmv_reference(m, y, sizes);
    for (size_t row = 0; row < m->rows; row++) {
        m->exact &= sizes[row] < 0x1p53;
        if (!isfinite(sizes[row]))
            pl_fail("--matrix %s: the elements of row %zu are too large: their sum is beyond the range of numbers",
                    m->recipe.file, row + 1);
    }
    m->tolerance = m->exact ? 0 : (double)(m->longest + 2) * DBL_EPSILON;
    free(y);
    free(sizes);
}

static void load(spmv_source *m)
{
    spmv_read(m->recipe.file, m);
    m->ptr = pl_allocate((m->rows + 1) * sizeof *m->ptr, "the matrix");
    int64_t *next = pl_allocate((m->rows + 1) * sizeof *next, "the matrix");
    for (size_t k = 0; k < m->elements; k++)
        count_element(m, &m->element[k], m->ptr);
    for (size_t row = 0; row < m->rows; row++) {
        const size_t length = (size_t)m->ptr[row + 1];
        m->longest = length > m->longest ? length : m->longest;
        next[row + 1] = m->ptr[row + 1] += m->ptr[row];
    }
    m->column = pl_allocate((size_t)m->ptr[m->rows] * sizeof *m->column, "the matrix");
    m->value = pl_allocate((size_t)m->ptr[m->rows] * sizeof *m->value, "the matrix");
    for (size_t k = 0; k < m->elements; k++) {
        const spmv_element *e = &m->element[k];
        m->column[next[e->row]] = e->column;
        m->value[next[e->row]++] = e->value;
        if (m->mirrored && e->row != e->column) {
            m->column[next[e->column]] = e->row;
            m->value[next[e->column]++] = m->mirrored * e->value;
        }
    }
    free(next);
    merge_rows(m);
    bound_error(m);
}

size_t spmv_row(const spmv_source *m, size_t row, uint64_t *work, int32_t *column, double *value)
{
    if (!m->recipe.file)
        return spmv_generated_row(m, row, work, column, value);
    const size_t n = (size_t)(m->ptr[row + 1] - m->ptr[row]);
    memcpy(column, m->column + m->ptr[row], n * sizeof *column);
    memcpy(value, m->value + m->ptr[row], n * sizeof *value);
    return n;
}

/* --- the independent product ----------------------------------------------------------------------------------- */

static void by_elements(const spmv_source *m, double *y, double *sizes)
{
    for (size_t k = 0; k < m->elements; k++) {
        const spmv_element e = m->element[k];
        const bool twice = m->mirrored && e.row != e.column;
        y[e.row] += e.value * spmv_x((size_t)e.column);
        if (twice)
            y[e.column] += m->mirrored * e.value * spmv_x((size_t)e.row);
        if (sizes) {
            sizes[e.row] += fabs(e.value * spmv_x((size_t)e.column));
            if (twice)
                sizes[e.column] += fabs(e.value * spmv_x((size_t)e.row));
        }
    }
}

void spmv_reference(const spmv_source *m, double *y, double *sizes)
{
    memset(y, 0, m->rows * sizeof *y);
    if (m->recipe.file)
        by_elements(m, y, sizes);
    else
        spmv_by_vectors(m, y);
}

/* --- SELL's order ---------------------------------------------------------------------------------------------- */

const spmv_order *spmv_order_of(spmv_source *m, long sigma)
{
    for (const spmv_order *o = m->order; o; o = o->next)
        if (o->sigma == sigma)
            return o;
    spmv_order *o = pl_allocate(sizeof *o, "the order of the rows");
    const size_t n = m->rows, window = (size_t)sigma < n ? (size_t)sigma : n;
    uint64_t *key = pl_allocate(2 * window * sizeof *key, "the order of the rows");
    o->sigma = sigma;
    o->chunks = (n + SPMV_CHUNK - 1) / SPMV_CHUNK;
    o->ptr = pl_allocate((o->chunks + 1) * sizeof *o->ptr, "the order of the rows");
    o->row = pl_allocate(n * sizeof *o->row, "the order of the rows");
    for (size_t begin = 0; begin < n; begin += window) {
        const size_t count = n - begin < window ? n - begin : window;
        for (size_t i = 0; i < count; i++)
            key[i] = (UINT32_MAX - (uint64_t)(m->ptr[begin + i + 1] - m->ptr[begin + i])) << 32 | i;
        spmv_sort(count, key, key + window);
        for (size_t i = 0; i < count; i++)
            o->row[begin + i] = (int32_t)(begin + (key[i] & UINT32_MAX));
    }
    for (size_t chunk = 0; chunk < o->chunks; chunk++) {
        int64_t longest = 0;
        for (size_t r = SPMV_CHUNK * chunk; r < SPMV_CHUNK * (chunk + 1) && r < n; r++) {
            const int64_t length = m->ptr[o->row[r] + 1] - m->ptr[o->row[r]];
            longest = length > longest ? length : longest;
        }
        o->ptr[chunk + 1] = o->ptr[chunk] + SPMV_CHUNK * longest;
    }
    free(key);
    o->next = m->order;
    return m->order = o;
}

/* --- made once, kept while needed ------------------------------------------------------------------------------- */

enum { KEPT = 3 };

static spmv_source *known;      /* the last used first */

static bool same(const spmv_recipe *a, const spmv_recipe *b)
{
    if (a->file || b->file)
        return a->file && b->file && !strcmp(a->file, b->file);
    return a->rows == b->rows && a->vector == b->vector && a->band == b->band;
}

static void drop(spmv_source *m)
{
    for (spmv_order *o = m->order; o;) {
        spmv_order *next = o->next;
        free(o->ptr);
        free(o->row);
        free(o);
        o = next;
    }
    free(m->ptr);
    free(m->vectors);
    free(m->users);
    free(m->user);
    free(m->element);
    free(m->column);
    free(m->value);
    free(m);
}

static void drop_unused(void)
{
    int kept = 0;
    for (spmv_source **at = &known; *at;) {
        spmv_source *m = *at;
        if (m->uses || kept++ < KEPT)
            at = &m->next;
        else {
            *at = m->next;
            drop(m);
        }
    }
}

spmv_source *spmv_source_of(const spmv_recipe *recipe)
{
    for (spmv_source **at = &known; *at; at = &(*at)->next)
        if (same(&(*at)->recipe, recipe)) {
            spmv_source *m = *at;
            *at = m->next;
            m->next = known;
            return known = m;
        }
    spmv_source *m = pl_allocate(sizeof *m, "the matrix");
    m->recipe = *recipe;
    if (recipe->file)
        load(m);
    else
        spmv_generate(m);
    m->next = known;
    known = m;
    drop_unused();
    return m;
}

spmv_source *spmv_take(const spmv_recipe *recipe)
{
    spmv_source *m = spmv_source_of(recipe);
    m->uses++;
    return m;
}

void spmv_leave(spmv_source *m) { m->uses--; }
