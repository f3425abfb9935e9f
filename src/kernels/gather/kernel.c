/* Gather  x(j) = a(index(j))  and scatter  a(index(j)) = x(j), and with two lists of indices what Spatter makes of them.
 *
 * Anderson et al. 1997, section 3.3.2 and table 5; the kernels of Spatter (github.com/hpcgarage/spatter, README).
 * The variants stand side by side; each differs in one thing, after which it is named: `columns` and `novec` from `plain`,
 * `unroll` from `novec`, `prefetch` from `unroll`.  A pass is r->last - r->first rows of one pattern; where there is one row only, as in
 * the source, the loop over passes is that of gather.c. */
#include "kernel.h"

void gather_plain(const gather_rows *r, double *restrict to, const double *restrict from,
                  const int32_t *restrict index, const int32_t *restrict inner)
{
    (void)inner;
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict a = from + r->delta * i;
        double *restrict x = to + r->length * row;
        for (size_t j = 0; j < r->length; j++)
            x[j] = a[index[j]];
    }
}

void scatter_plain(const gather_rows *r, double *restrict to, const double *restrict from,
                   const int32_t *restrict index, const int32_t *restrict inner)
{
    (void)inner;
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict x = from + r->length * row;
        double *restrict a = to + r->delta * i;
        for (size_t j = 0; j < r->length; j++)
            a[index[j]] = x[j];
    }
}

void gs_plain(const gather_rows *r, double *restrict to, const double *restrict from, const int32_t *restrict index,
              const int32_t *restrict inner)
{
    for (size_t i = r->first; i < r->last; i++) {
        const double *restrict a = from + r->delta * i;
        double *restrict b = to + r->delta_to * i;
        for (size_t j = 0; j < r->length; j++)
            b[inner[j]] = a[index[j]];
    }
}

void multigather_plain(const gather_rows *r, double *restrict to, const double *restrict from,
                       const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict a = from + r->delta * i;
        double *restrict x = to + r->length * row;
        for (size_t j = 0; j < r->length; j++)
            x[j] = a[index[inner[j]]];
    }
}

void multiscatter_plain(const gather_rows *r, double *restrict to, const double *restrict from,
                        const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict x = from + r->length * row;
        double *restrict a = to + r->delta * i;
        for (size_t j = 0; j < r->length; j++)
            a[index[inner[j]]] = x[j];
    }
}

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
    (void)inner;
    for (size_t first = r->first; first < r->last; first += r->block)
        for (size_t j = 0, last = end_of_block(first, r); j < r->length; j++)
            for (size_t i = first, row = first % r->wrap; i < last; i++, row = next(row, r))
                to[r->length * row + j] = from[r->delta * i + (size_t)index[j]];
}

void scatter_columns(const gather_rows *r, double *restrict to, const double *restrict from,
                    const int32_t *restrict index, const int32_t *restrict inner)
{
    (void)inner;
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

/* novec: plain, one load and one store at a time. */

PL_NOVEC_FUNCTION
void gather_novec(const gather_rows *r, double *restrict to, const double *restrict from,
                  const int32_t *restrict index, const int32_t *restrict inner)
{
    (void)inner;
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict a = from + r->delta * i;
        double *restrict x = to + r->length * row;
        PL_NOVEC_LOOP
        for (size_t j = 0; j < r->length; j++)
            x[j] = a[index[j]];
    }
}

PL_NOVEC_FUNCTION
void scatter_novec(const gather_rows *r, double *restrict to, const double *restrict from,
                   const int32_t *restrict index, const int32_t *restrict inner)
{
    (void)inner;
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict x = from + r->length * row;
        double *restrict a = to + r->delta * i;
        PL_NOVEC_LOOP
        for (size_t j = 0; j < r->length; j++)
            a[index[j]] = x[j];
    }
}

PL_NOVEC_FUNCTION
void gs_novec(const gather_rows *r, double *restrict to, const double *restrict from, const int32_t *restrict index,
              const int32_t *restrict inner)
{
    for (size_t i = r->first; i < r->last; i++) {
        const double *restrict a = from + r->delta * i;
        double *restrict b = to + r->delta_to * i;
        PL_NOVEC_LOOP
        for (size_t j = 0; j < r->length; j++)
            b[inner[j]] = a[index[j]];
    }
}

PL_NOVEC_FUNCTION
void multigather_novec(const gather_rows *r, double *restrict to, const double *restrict from,
                       const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict a = from + r->delta * i;
        double *restrict x = to + r->length * row;
        PL_NOVEC_LOOP
        for (size_t j = 0; j < r->length; j++)
            x[j] = a[index[inner[j]]];
    }
}

PL_NOVEC_FUNCTION
void multiscatter_novec(const gather_rows *r, double *restrict to, const double *restrict from,
                        const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict x = from + r->length * row;
        double *restrict a = to + r->delta * i;
        PL_NOVEC_LOOP
        for (size_t j = 0; j < r->length; j++)
            a[index[inner[j]]] = x[j];
    }
}

/* unroll: novec, 8 elements between one branch and the next.  clang is forbidden loop by loop: where the inner one is unrolled
 * away, its eight statements are the outer one's. */

PL_NOVEC_FUNCTION
void gather_unroll(const gather_rows *r, double *restrict to, const double *restrict from,
                   const int32_t *restrict index, const int32_t *restrict inner)
{
    (void)inner;
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict a = from + r->delta * i;
        double *restrict x = to + r->length * row;
        size_t j = 0;
        PL_NOVEC_LOOP
        for (; j + 8 <= r->length; j += 8)
            PL_NOVEC_LOOP
            for (size_t k = j; k < j + 8; k++)
                x[k] = a[index[k]];
        PL_NOVEC_LOOP
        for (; j < r->length; j++)
            x[j] = a[index[j]];
    }
}

PL_NOVEC_FUNCTION
void scatter_unroll(const gather_rows *r, double *restrict to, const double *restrict from,
                    const int32_t *restrict index, const int32_t *restrict inner)
{
    (void)inner;
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict x = from + r->length * row;
        double *restrict a = to + r->delta * i;
        size_t j = 0;
        PL_NOVEC_LOOP
        for (; j + 8 <= r->length; j += 8)
            PL_NOVEC_LOOP
            for (size_t k = j; k < j + 8; k++)
                a[index[k]] = x[k];
        PL_NOVEC_LOOP
        for (; j < r->length; j++)
            a[index[j]] = x[j];
    }
}

PL_NOVEC_FUNCTION
void gs_unroll(const gather_rows *r, double *restrict to, const double *restrict from, const int32_t *restrict index,
               const int32_t *restrict inner)
{
    for (size_t i = r->first; i < r->last; i++) {
        const double *restrict a = from + r->delta * i;
        double *restrict b = to + r->delta_to * i;
        size_t j = 0;
        PL_NOVEC_LOOP
        for (; j + 8 <= r->length; j += 8)
            PL_NOVEC_LOOP
            for (size_t k = j; k < j + 8; k++)
                b[inner[k]] = a[index[k]];
        PL_NOVEC_LOOP
        for (; j < r->length; j++)
            b[inner[j]] = a[index[j]];
    }
}

PL_NOVEC_FUNCTION
void multigather_unroll(const gather_rows *r, double *restrict to, const double *restrict from,
                        const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict a = from + r->delta * i;
        double *restrict x = to + r->length * row;
        size_t j = 0;
        PL_NOVEC_LOOP
        for (; j + 8 <= r->length; j += 8)
            PL_NOVEC_LOOP
            for (size_t k = j; k < j + 8; k++)
                x[k] = a[index[inner[k]]];
        PL_NOVEC_LOOP
        for (; j < r->length; j++)
            x[j] = a[index[inner[j]]];
    }
}

PL_NOVEC_FUNCTION
void multiscatter_unroll(const gather_rows *r, double *restrict to, const double *restrict from,
                         const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict x = from + r->length * row;
        double *restrict a = to + r->delta * i;
        size_t j = 0;
        PL_NOVEC_LOOP
        for (; j + 8 <= r->length; j += 8)
            PL_NOVEC_LOOP
            for (size_t k = j; k < j + 8; k++)
                a[index[inner[k]]] = x[k];
        PL_NOVEC_LOOP
        for (; j < r->length; j++)
            a[index[inner[j]]] = x[j];
    }
}

/* prefetch: what will be accessed r->ahead elements later.  In a row longer than that, by the indices further on; in
 * shorter ones by the same index of a row further on, which is at a known distance. */

static inline size_t rows_ahead(const gather_rows *r) { return r->length > r->ahead ? 0 : r->ahead / r->length; }

/* Elements of the row that are prefetched from within it. */
static inline size_t within(const gather_rows *r) { return r->length > r->ahead ? r->length - r->ahead : 0; }

PL_NOVEC_FUNCTION
void gather_prefetch(const gather_rows *r, double *restrict to, const double *restrict from,
                     const int32_t *restrict index, const int32_t *restrict inner)
{
    const size_t later = r->delta * rows_ahead(r), inside = within(r);
    (void)inner;
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict a = from + r->delta * i;
        double *restrict x = to + r->length * row;
        size_t j = 0;
        PL_NOVEC_LOOP
        for (; j + 8 <= inside; j += 8) {
            for (size_t k = j; k < j + 8; k++)
                __builtin_prefetch(a + index[k + r->ahead], 0);
            PL_NOVEC_LOOP
            for (size_t k = j; k < j + 8; k++)
                x[k] = a[index[k]];
        }
        PL_NOVEC_LOOP
        for (; j + 8 <= r->length; j += 8) {
            for (size_t k = j; k < j + 8; k++)
                __builtin_prefetch(a + later + index[k], 0);
            PL_NOVEC_LOOP
            for (size_t k = j; k < j + 8; k++)
                x[k] = a[index[k]];
        }
        PL_NOVEC_LOOP
        for (; j < r->length; j++)
            x[j] = a[index[j]];
    }
}

PL_NOVEC_FUNCTION
void scatter_prefetch(const gather_rows *r, double *restrict to, const double *restrict from,
                      const int32_t *restrict index, const int32_t *restrict inner)
{
    const size_t later = r->delta * rows_ahead(r), inside = within(r);
    (void)inner;
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict x = from + r->length * row;
        double *restrict a = to + r->delta * i;
        size_t j = 0;
        PL_NOVEC_LOOP
        for (; j + 8 <= inside; j += 8) {
            for (size_t k = j; k < j + 8; k++)
                __builtin_prefetch(a + index[k + r->ahead], 1);
            PL_NOVEC_LOOP
            for (size_t k = j; k < j + 8; k++)
                a[index[k]] = x[k];
        }
        PL_NOVEC_LOOP
        for (; j + 8 <= r->length; j += 8) {
            for (size_t k = j; k < j + 8; k++)
                __builtin_prefetch(a + later + index[k], 1);
            PL_NOVEC_LOOP
            for (size_t k = j; k < j + 8; k++)
                a[index[k]] = x[k];
        }
        PL_NOVEC_LOOP
        for (; j < r->length; j++)
            a[index[j]] = x[j];
    }
}

PL_NOVEC_FUNCTION
void gs_prefetch(const gather_rows *r, double *restrict to, const double *restrict from, const int32_t *restrict index,
                 const int32_t *restrict inner)
{
    const size_t later = r->delta * rows_ahead(r), later_to = r->delta_to * rows_ahead(r), inside = within(r);
    for (size_t i = r->first; i < r->last; i++) {
        const double *restrict a = from + r->delta * i;
        double *restrict b = to + r->delta_to * i;
        size_t j = 0;
        PL_NOVEC_LOOP
        for (; j + 8 <= inside; j += 8) {
            for (size_t k = j; k < j + 8; k++) {
                __builtin_prefetch(a + index[k + r->ahead], 0);
                __builtin_prefetch(b + inner[k + r->ahead], 1);
            }
            PL_NOVEC_LOOP
            for (size_t k = j; k < j + 8; k++)
                b[inner[k]] = a[index[k]];
        }
        PL_NOVEC_LOOP
        for (; j + 8 <= r->length; j += 8) {
            for (size_t k = j; k < j + 8; k++) {
                __builtin_prefetch(a + later + index[k], 0);
                __builtin_prefetch(b + later_to + inner[k], 1);
            }
            PL_NOVEC_LOOP
            for (size_t k = j; k < j + 8; k++)
                b[inner[k]] = a[index[k]];
        }
        PL_NOVEC_LOOP
        for (; j < r->length; j++)
            b[inner[j]] = a[index[j]];
    }
}

PL_NOVEC_FUNCTION
void multigather_prefetch(const gather_rows *r, double *restrict to, const double *restrict from,
                          const int32_t *restrict index, const int32_t *restrict inner)
{
    const size_t later = r->delta * rows_ahead(r), inside = within(r);
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict a = from + r->delta * i;
        double *restrict x = to + r->length * row;
        size_t j = 0;
        PL_NOVEC_LOOP
        for (; j + 8 <= inside; j += 8) {
            for (size_t k = j; k < j + 8; k++)
                __builtin_prefetch(a + index[inner[k + r->ahead]], 0);
            PL_NOVEC_LOOP
            for (size_t k = j; k < j + 8; k++)
                x[k] = a[index[inner[k]]];
        }
        PL_NOVEC_LOOP
        for (; j + 8 <= r->length; j += 8) {
            for (size_t k = j; k < j + 8; k++)
                __builtin_prefetch(a + later + index[inner[k]], 0);
            PL_NOVEC_LOOP
            for (size_t k = j; k < j + 8; k++)
                x[k] = a[index[inner[k]]];
        }
        PL_NOVEC_LOOP
        for (; j < r->length; j++)
            x[j] = a[index[inner[j]]];
    }
}

PL_NOVEC_FUNCTION
void multiscatter_prefetch(const gather_rows *r, double *restrict to, const double *restrict from,
                           const int32_t *restrict index, const int32_t *restrict inner)
{
    const size_t later = r->delta * rows_ahead(r), inside = within(r);
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict x = from + r->length * row;
        double *restrict a = to + r->delta * i;
        size_t j = 0;
        PL_NOVEC_LOOP
        for (; j + 8 <= inside; j += 8) {
            for (size_t k = j; k < j + 8; k++)
                __builtin_prefetch(a + index[inner[k + r->ahead]], 1);
            PL_NOVEC_LOOP
            for (size_t k = j; k < j + 8; k++)
                a[index[inner[k]]] = x[k];
        }
        PL_NOVEC_LOOP
        for (; j + 8 <= r->length; j += 8) {
            for (size_t k = j; k < j + 8; k++)
                __builtin_prefetch(a + later + index[inner[k]], 1);
            PL_NOVEC_LOOP
            for (size_t k = j; k < j + 8; k++)
                a[index[inner[k]]] = x[k];
        }
        PL_NOVEC_LOOP
        for (; j < r->length; j++)
            a[index[inner[j]]] = x[j];
    }
}
