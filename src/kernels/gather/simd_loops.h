/* The loops of kernel.c with the instructions of one width: kernel_x86.c includes this once for each (simd.h), with
 *
 *   CHOSEN(list, indices)       what a list of indices has there
 *   SCATTER_TO(a, indices, x)   x to where they say */
#include "simd.h"

TARGET void NAME(gather_simd)(const gather_rows *r, double *restrict to, const double *restrict from,
                              const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict a = from + r->delta * i;
        double *restrict x = to + r->length * row;
        size_t j = 0;
        for (; j + LANES <= r->length; j += LANES)
            STORE(x + j, GATHER_FROM(a, INDICES(index + j)));
        for (; j < r->length; j++)
            x[j] = a[index[j]];
    }
}

TARGET void NAME(scatter_simd)(const gather_rows *r, double *restrict to, const double *restrict from,
                               const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict x = from + r->length * row;
        double *restrict a = to + r->delta * i;
        size_t j = 0;
        for (; j + LANES <= r->length; j += LANES)
            SCATTER_TO(a, INDICES(index + j), LOAD(x + j));
        for (; j < r->length; j++)
            a[index[j]] = x[j];
    }
}

TARGET void NAME(gs_simd)(const gather_rows *r, double *restrict to, const double *restrict from,
                          const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first; i < r->last; i++) {
        const double *restrict a = from + r->delta * i;
        double *restrict b = to + r->delta_to * i;
        size_t j = 0;
        for (; j + LANES <= r->length; j += LANES)
            SCATTER_TO(b, INDICES(inner + j), GATHER_FROM(a, INDICES(index + j)));
        for (; j < r->length; j++)
            b[inner[j]] = a[index[j]];
    }
}

TARGET void NAME(multigather_simd)(const gather_rows *r, double *restrict to, const double *restrict from,
                                   const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict a = from + r->delta * i;
        double *restrict x = to + r->length * row;
        size_t j = 0;
        for (; j + LANES <= r->length; j += LANES)
            STORE(x + j, GATHER_FROM(a, CHOSEN(index, INDICES(inner + j))));
        for (; j < r->length; j++)
            x[j] = a[index[inner[j]]];
    }
}

TARGET void NAME(multiscatter_simd)(const gather_rows *r, double *restrict to, const double *restrict from,
                                    const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict x = from + r->length * row;
        double *restrict a = to + r->delta * i;
        size_t j = 0;
        for (; j + LANES <= r->length; j += LANES)
            SCATTER_TO(a, CHOSEN(index, INDICES(inner + j)), LOAD(x + j));
        for (; j < r->length; j++)
            a[index[inner[j]]] = x[j];
    }
}

#undef CHOSEN
#undef SCATTER_TO
