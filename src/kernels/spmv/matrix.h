/* The matrix before it is laid out: from the generator or from a file, its rows one by one, and the product by which the
 * kernel's result is verified. */
#ifndef PLUMBLINE_SPMV_MATRIX_H
#define PLUMBLINE_SPMV_MATRIX_H

#include "plumbline.h"

/* What a matrix is made from. */
typedef struct {
    size_t rows;        /* of the generator's */
    size_t vector;      /* nonzeros of each of its vectors, at least 1 */
    size_t band;        /* how far from its own row a vector reaches; rows or more: anywhere */
    const char *file;   /* Matrix Market; NULL: the generator */
} spmv_recipe;

/* An element of a file, as it stands there. */
typedef struct { int32_t row, column; double value; } spmv_element;

/* An order of the rows for SELL-8-sigma: within windows of sigma rows the longest come first. */
typedef struct spmv_order {
    long sigma;
    size_t chunks;
    int64_t *ptr;       /* chunks + 1: the slots of each chunk */
    int32_t *row;       /* rows: which row stands where */
    struct spmv_order *next;
} spmv_order;

typedef struct spmv_source {
    spmv_recipe recipe;
    size_t rows, columns;
    int64_t *ptr;       /* rows + 1: the elements of each row in CRS */
    size_t longest;     /* most contributions to a row: elements before those of one place are added up */
    bool exact;         /* y has no rounding error, in whatever order it is summed */
    double tolerance;   /* largest max_error that is right; 0 where exact */

    uint32_t *vectors;  /* generator: the indices of each vector */
    int64_t *users;     /* rows + 1: the vectors that hold each row */
    uint32_t *user;

    size_t elements;    /* file: as read, and the rows made of it */
    spmv_element *element;
    int mirrored;       /* sign of the element beyond the diagonal that each element below it stands for; 0: none */
    int32_t *column;
    double *value;

    spmv_order *order;  /* those made so far */
    struct spmv_source *next;
    int uses;
} spmv_source;

/* The matrix of a recipe; made once, and kept as long as it is used or among the last few. */
spmv_source *spmv_source_of(const spmv_recipe *);
spmv_source *spmv_take(const spmv_recipe *);    /* the same, kept until it is left */
void spmv_leave(spmv_source *);

/* Bytes at least that a matrix of the generator takes, laid out in CRS and while it is made. */
double spmv_bytes_needed(const spmv_recipe *);

/* Elements of a row, ascending by column, each column once: their number.  `work` has room for 2 * longest keys. */
size_t spmv_row(const spmv_source *, size_t row, uint64_t *work, int32_t *column, double *value);

void spmv_sort(size_t n, uint64_t *key, uint64_t *spare);    /* spare has room for as many keys */

const spmv_order *spmv_order_of(spmv_source *, long sigma);

/* Element j of x: a whole number, never 0, up to 1024 in magnitude. */
double spmv_x(size_t j);

/* y = A x by another way than through rows: by the generator's vectors, drawn anew, or by the elements of the file in
 * the order of the file.  sizes: the sum of the magnitudes |a x| of each row; only where not exact, else NULL. */
void spmv_reference(const spmv_source *, double *y, double *sizes);

/* matrix_market.c: fills rows, columns, element, mirrored; pl_fail()s on what it cannot read, with file and line. */
void spmv_read(const char *file, spmv_source *);

#endif
