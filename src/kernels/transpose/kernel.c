/* Transpose  B(j,i) = A(i,j)  of a square matrix of doubles, stored by rows: 8 bytes read and 8 written per element.
 *
 * Anderson, Brooks, Grassl, Scott 1997, section 3.3.3 and table 6; Byna, Gropp, Sun, Thakur 2003, sections 3 and 6.
 * One of the two matrices is walked through against its rows; the variants differ in the order of the walk.  Here are
 * those that any compiler builds; those with register transposes are in kernel_x86.c. */
#include <string.h>

#include "kernel.h"

/* Reads are contiguous, writes a row of B apart. */
void transpose_rows(size_t n, size_t ld, const double *restrict a, double *restrict b, pl_range band, size_t block)
{
    for (size_t i = band.begin; i < band.end; i++) {
        PL_KEEP_LOOP();     /* the order is the subject: not to be interchanged */
        for (size_t j = 0; j < n; j++)
            b[j * ld + i] = a[i * ld + j];
    }
}

/* Writes are contiguous, reads a row of A apart. */
void transpose_columns(size_t n, size_t ld, const double *restrict a, double *restrict b, pl_range band, size_t block)
{
    for (size_t j = band.begin; j < band.end; j++) {
        PL_KEEP_LOOP();
        for (size_t i = 0; i < n; i++)
            b[j * ld + i] = a[i * ld + j];
    }
}

/* Reads and writes are a row and an element apart: an odd stride where n is even (anderson1997, section 3.3.3). */
void transpose_diagonals(size_t n, size_t ld, const double *restrict a, double *restrict b, pl_range band, size_t block)
{
    for (size_t at = band.begin, end; at < band.end; at = end) {
        const size_t d = at / n, i = at % n;
        end = pl_least(at - i + n, band.end);
        const size_t last = i + (end - at), edge = i > n - d ? i : pl_least(n - d, last);
        for (size_t k = i; k < edge; k++)
            b[(k + d) * ld + k] = a[k * ld + k + d];
        for (size_t k = edge; k < last; k++)
            b[(k + d - n) * ld + k] = a[k * ld + k + d - n];
    }
}

/* Rows, a strip of `block` columns at a time: the lines of B that the strip's rows go to, one for each of its columns,
 * are still in cache when the next row comes, and so are their pages in the TLB. */
void transpose_blocked(size_t n, size_t ld, const double *restrict a, double *restrict b, pl_range band, size_t block)
{
    for (size_t strip = band.begin, end; strip < band.end; strip = end) {
        end = transpose_strip_end(strip, band.end, block);
        for (size_t i = 0; i < n; i++) {
            PL_KEEP_LOOP();
            for (size_t j = strip; j < end; j++)
                b[j * ld + i] = a[i * ld + j];
        }
    }
}

/* --- in place -------------------------------------------------------------------------------------------------- */

static void swap(double *x, double *y)
{
    const double was = *x;
    *x = *y;
    *y = was;
}

void transpose_in_place_rows(size_t n, size_t ld, double *a, const pl_piece *part, size_t block)
{
    for (size_t i = part->outer.begin; i < part->outer.end; i++)
        for (size_t j = part->inner.begin; j < pl_least(part->inner.end, i); j++)
            swap(&a[i * ld + j], &a[j * ld + i]);
}

void transpose_in_place_blocked(size_t n, size_t ld, double *a, const pl_piece *part, size_t block)
{
    for (size_t strip = part->inner.begin, end; strip < pl_least(part->inner.end, part->outer.end); strip = end) {
        end = pl_least(strip + block, part->inner.end);
        for (size_t i = part->outer.begin; i < part->outer.end; i++)
            for (size_t j = strip; j < pl_least(end, i); j++)
                swap(&a[i * ld + j], &a[j * ld + i]);
    }
}

/* --- yardsticks ------------------------------------------------------------------------------------------------ */

/* A copy: what moving the bytes costs without the transpose. */
void transpose_memcpy(size_t n, size_t ld, const double *restrict a, double *restrict b, pl_range band, size_t block)
{
    const size_t rows = n == ld ? band.end - band.begin : 1;      /* at once */
    for (size_t i = band.begin; i < band.end; i += rows)
        memcpy(b + i * ld, a + i * ld, rows * n * sizeof *a);
}

#ifdef PL_OPENBLAS
#include <cblas.h>

void transpose_openblas(size_t n, size_t ld, const double *restrict a, double *restrict b, pl_range band, size_t block)
{
    const blasint rows = (blasint)(band.end - band.begin), columns = (blasint)n, distance = (blasint)ld;
    if (rows > 0)
        cblas_domatcopy(CblasRowMajor, CblasTrans, rows, columns, 1.0, a + band.begin * ld, distance, b + band.begin, distance);
}

/* The whole matrix at once: the library knows no other way. */
void transpose_in_place_openblas(size_t n, size_t ld, double *a, const pl_piece *part, size_t block)
{
    cblas_dimatcopy(CblasRowMajor, CblasTrans, (blasint)n, (blasint)n, 1.0, a, (blasint)ld, (blasint)ld);
}
#endif
