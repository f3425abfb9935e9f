/* Gather  x(j) = a(index(j))  and scatter  a(index(j)) = x(j), and with two lists of indices what Spatter makes of them.
 *
 * Anderson et al. 1997, section 3.3.2 and table 5; the kernels of Spatter (github.com/hpcgarage/spatter, README).
 * A pass is r->last - r->first rows of one pattern; where there is one row only, as in the source, the loop over passes is that of
 * gather.c.  rows.h has the variants that go row by row. */
#include "kernel.h"

/* prefetch: so many rows further on; and the elements of the row that are fetched from within it. */
static inline size_t rows_ahead(const gather_rows *r) { return r->length > r->ahead ? 0 : r->ahead / r->length; }

static inline size_t within(const gather_rows *r) { return r->length > r->ahead ? r->length - r->ahead : 0; }

#define KERNEL(variant) gather_##variant
#define TO_ROW r->length * row
#define TO(j) j
#define FROM_ROW r->delta * i
#define FROM(j) index[j]
#define FETCH(j, rows) __builtin_prefetch(a + r->delta * (rows) + FROM(j), 0)
#include "rows.h"

#define KERNEL(variant) scatter_##variant
#define TO_ROW r->delta * i
#define TO(j) index[j]
#define FROM_ROW r->length * row
#define FROM(j) j
#define FETCH(j, rows) __builtin_prefetch(b + r->delta * (rows) + TO(j), 1)
#include "rows.h"

#define KERNEL(variant) gs_##variant
#define TO_ROW r->delta_to * i
#define TO(j) inner[j]
#define FROM_ROW r->delta * i
#define FROM(j) index[j]
#define FETCH(j, rows) (__builtin_prefetch(a + r->delta * (rows) + FROM(j), 0), __builtin_prefetch(b + r->delta_to * (rows) + TO(j), 1))
#include "rows.h"

#define KERNEL(variant) multigather_##variant
#define TO_ROW r->length * row
#define TO(j) j
#define FROM_ROW r->delta * i
#define FROM(j) index[inner[j]]
#define FETCH(j, rows) __builtin_prefetch(a + r->delta * (rows) + FROM(j), 0)
#include "rows.h"

#define KERNEL(variant) multiscatter_##variant
#define TO_ROW r->delta * i
#define TO(j) index[inner[j]]
#define FROM_ROW r->length * row
#define FROM(j) j
#define FETCH(j, rows) __builtin_prefetch(b + r->delta * (rows) + TO(j), 1)
#include "rows.h"

/* columns: plain with the loops over rows and indices interchanged, r->block rows at a time.  Threads that store to the same lines
 * then take a line from each other once for a block of stores, and not for every one; and where rows are one element apart the
 * stores are contiguous. */

static inline size_t end_of_block(size_t first, const gather_rows *r)
{
    return first + r->block < r->last ? first + r->block : r->last;
}

/* The j-th element of each row of a block, to where the first row's belongs. */
static inline void store_column(const gather_rows *r, size_t first, size_t last, size_t j, double *restrict a,
                                const double *restrict from)
{
    if (r->wrap == 1)       /* the usual case: one element, with nothing to count */
        for (size_t i = first; i < last; i++)
            a[r->delta * i] = from[j];
    else
        for (size_t i = first, row = first % r->wrap; i < last; i++, row = next(row, r))
            a[r->delta * i] = from[r->length * row + j];
}

void gather_columns(const gather_rows *r, double *restrict to, const double *restrict from,
                    const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t first = r->first; first < r->last; first += r->block)
        for (size_t j = 0, last = end_of_block(first, r); j < r->length; j++)
            for (size_t i = first, row = first % r->wrap; i < last; i++, row = next(row, r))
                to[r->length * row + j] = from[r->delta * i + (size_t)index[j]];
}

void scatter_columns(const gather_rows *r, double *restrict to, const double *restrict from,
                     const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t first = r->first; first < r->last; first += r->block)
        for (size_t j = 0, last = end_of_block(first, r); j < r->length; j++)
            store_column(r, first, last, j, to + index[j], from);
}

void gs_columns(const gather_rows *r, double *restrict to, const double *restrict from, const int32_t *restrict index,
                const int32_t *restrict inner)
{
    for (size_t first = r->first; first < r->last; first += r->block)
        for (size_t j = 0, last = end_of_block(first, r); j < r->length; j++)
            for (size_t i = first; i < last; i++)
                to[r->delta_to * i + (size_t)inner[j]] = from[r->delta * i + (size_t)index[j]];
}

void multigather_columns(const gather_rows *r, double *restrict to, const double *restrict from,
                         const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t first = r->first; first < r->last; first += r->block)
        for (size_t j = 0, last = end_of_block(first, r); j < r->length; j++)
            for (size_t i = first, row = first % r->wrap; i < last; i++, row = next(row, r))
                to[r->length * row + j] = from[r->delta * i + (size_t)index[inner[j]]];
}

void multiscatter_columns(const gather_rows *r, double *restrict to, const double *restrict from,
                          const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t first = r->first; first < r->last; first += r->block)
        for (size_t j = 0, last = end_of_block(first, r); j < r->length; j++)
            store_column(r, first, last, j, to + index[inner[j]], from);
}
