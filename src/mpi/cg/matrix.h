/* The matrix of the NAS benchmark CG: symmetric positive definite, sparse, of random pattern; a sum of outer products of
 * random sparse vectors with weights that fall geometrically from 1 to 0.1, which is its condition number.
 *
 * Bailey, Barton, Lasinski, Simon (eds.), The NAS Parallel Benchmarks, NASA TM 103863, 1993: kernel CG; the generator of
 * random numbers is that of its section on EP: x <- 5^13 x mod 2^46. */
#ifndef PLUMBLINE_CG_MATRIX_H
#define PLUMBLINE_CG_MATRIX_H

#include <stddef.h>

typedef struct {
    const char *name;
    size_t n;           /* rows */
    int nonzeros;       /* of each random vector, before its own element is set */
    int outer;          /* outer iterations */
    double shift;       /* the matrix is A + (0.1 - shift) I: the eigenvalue nearest to `shift` is sought */
    double zeta;        /* what comes out after so many outer iterations, as published */
} cg_size;

/* S, W, A; ends with a NULL name. */
extern const cg_size cg_sizes[];
const cg_size *cg_size_of(const char *name);    /* NULL: there is none */

/* Rows [row, row + rows) and columns [column, column + columns) of a matrix, by rows; columns are counted from `column`.
 * The diagonal is kept apart, that of all the block's columns: a block on it has no more elements than another. */
typedef struct {
    size_t row, rows, column, columns;
    size_t *begin;      /* rows + 1 */
    int *at;            /* column of each element, ascending within a row */
    double *value;
    double *diagonal;   /* columns */
} cg_block;

/* The random vectors, all of them: small. */
typedef struct cg_vectors cg_vectors;
cg_vectors *cg_vectors_create(const cg_size *);
void cg_vectors_destroy(cg_vectors *);

/* Where to cut 0..n-1 into parts with nearly as many elements of the matrix in each part's rows: cut[0] = 0, ...
 * cut[parts] = n. */
void cg_cut(const cg_size *, const cg_vectors *, int parts, size_t *cut);

/* Gives a block, whose rows and columns are set, its elements. */
void cg_block_create(const cg_size *, const cg_vectors *, cg_block *);
void cg_block_destroy(cg_block *);

#endif
