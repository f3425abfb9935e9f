/* The loops over the rows of a pattern, for one of the five kernels: kernel.c includes this once for each, with
 *
 *   KERNEL(variant)     the function's name
 *   TO_ROW, FROM_ROW    where row i begins in the array that is written and in the one that is read
 *   TO(j), FROM(j)      where its j-th element is from there
 *   FETCH(j, rows)      prefetches what is scattered of the j-th element, so many rows further on
 *
 * The variants stand side by side; each differs in one thing: `novec` from `plain`, `unroll` from `novec`, `prefetch` from `unroll`. */

void KERNEL(plain)(const gather_rows *r, double *restrict to, const double *restrict from,
                   const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict a = from + FROM_ROW;
        double *restrict b = to + TO_ROW;
        for (size_t j = 0; j < r->length; j++)
            b[TO(j)] = a[FROM(j)];
    }
}

/* One load and one store at a time. */
PL_NOVEC_FUNCTION
void KERNEL(novec)(const gather_rows *r, double *restrict to, const double *restrict from,
                   const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict a = from + FROM_ROW;
        double *restrict b = to + TO_ROW;
        PL_NOVEC_LOOP
        for (size_t j = 0; j < r->length; j++)
            b[TO(j)] = a[FROM(j)];
    }
}

/* 8 elements between one branch and the next.  clang is forbidden loop by loop: where the inner one is unrolled away, its eight
 * statements are the outer one's. */
PL_NOVEC_FUNCTION
void KERNEL(unroll)(const gather_rows *r, double *restrict to, const double *restrict from,
                    const int32_t *restrict index, const int32_t *restrict inner)
{
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict a = from + FROM_ROW;
        double *restrict b = to + TO_ROW;
        size_t j = 0;
        PL_NOVEC_LOOP
        for (; j + 8 <= r->length; j += 8) {
            PL_NOVEC_LOOP
            for (size_t k = j; k < j + 8; k++)
                b[TO(k)] = a[FROM(k)];
        }
        PL_NOVEC_LOOP
        for (; j < r->length; j++)
            b[TO(j)] = a[FROM(j)];
    }
}

/* What will be accessed r->ahead elements later is fetched.  In a row longer than that, by the indices further on; in shorter ones by
 * the same index of a row further on, which is at a known distance. */
PL_NOVEC_FUNCTION
void KERNEL(prefetch)(const gather_rows *r, double *restrict to, const double *restrict from,
                      const int32_t *restrict index, const int32_t *restrict inner)
{
    const size_t rows = rows_ahead(r), inside = within(r);
    for (size_t i = r->first, row = i % r->wrap; i < r->last; i++, row = next(row, r)) {
        const double *restrict a = from + FROM_ROW;
        double *restrict b = to + TO_ROW;
        size_t j = 0;
        PL_NOVEC_LOOP
        for (; j + 8 <= inside; j += 8) {
            for (size_t k = j; k < j + 8; k++)
                FETCH(k + r->ahead, 0);
            PL_NOVEC_LOOP
            for (size_t k = j; k < j + 8; k++)
                b[TO(k)] = a[FROM(k)];
        }
        PL_NOVEC_LOOP
        for (; j + 8 <= r->length; j += 8) {
            for (size_t k = j; k < j + 8; k++)
                FETCH(k, rows);
            PL_NOVEC_LOOP
            for (size_t k = j; k < j + 8; k++)
                b[TO(k)] = a[FROM(k)];
        }
        PL_NOVEC_LOOP
        for (; j < r->length; j++)
            b[TO(j)] = a[FROM(j)];
    }
}

#undef KERNEL
#undef TO_ROW
#undef FROM_ROW
#undef TO
#undef FROM
#undef FETCH
