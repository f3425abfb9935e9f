/* The conjugate gradient mini-application, after the NAS benchmark CG (NASA TM 103863): an estimate of the eigenvalue of a
 * sparse matrix nearest to a shift, by inverse iteration; each of its steps is 25 steps of conjugate gradients.
 *
 * Data: a grid of processes, square or twice as wide as high, each with a block of the matrix; vectors are cut by columns
 * of the grid, or further (cg_exchange).  A product A p (anderson1997, section 5.3: row sums, a transpose exchange, scalar
 * sums) is each process's block times its column's part of p; the sum of these along the row of the grid; and an exchange
 * that brings what is cut by rows of the grid to where it is needed, cut by columns. */
#ifndef PLUMBLINE_CG_H
#define PLUMBLINE_CG_H

#include "app.h"
#include "matrix.h"

enum { CG_STEPS = 25 };         /* of conjugate gradients, per outer iteration */

/* Of the residual, and of zeta's relative difference from the published one: what the NAS benchmark asks for. */
static const double cg_tolerance = 1e-10;

/* How, on R rows by C columns of processes, for n words:
 *   halving:  each process has n/RC words of a vector, and no work is done twice.  The column of the grid gathers p, log2(R)
 *             messages of n/RC, ... n/2C; row sums by recursive halving, log2(C) messages of n/2R, ... n/RC; transpose n/RC;
 *             scalar sums over all processes, log2(RC) messages.  The least traffic; the lengths and the aim of the source.
 *   doubling: each process of a column has the column's n/C words.  Row sums by recursive doubling, log2(C) messages of n/R;
 *             transpose n/C; scalar sums along a row, log2(C) messages.  Fewer messages, more bytes, vector work done R times;
 *             so the NAS benchmarks' own program does it. */
typedef enum { CG_HALVING, CG_DOUBLING } cg_exchange;

typedef struct {
    app *a;
    const cg_size *size;
    cg_exchange exchange;
    int grid_rows, grid_columns, grid_row, grid_column;
    MPI_Comm row, column, sums;         /* processes of our row, of our column of the grid; those whose words make a vector */
    size_t *cut;                        /* first column of each column block, and n */
    cg_block block;
    size_t own, length;                 /* our words of a vector: `length` from block.column + own on */
    double *x, *z, *p, *q, *r;          /* of `length` each */
    double *gathered, *w, *theirs;      /* p, of block.columns; A p, of block.rows; a partner's part of it */
    double elements;                    /* of the matrix, of all blocks together, without the diagonal */
    int products;                       /* with the matrix, since cg_start() */
    double zeta, residual;              /* after an outer iteration; residual = ||x - A z|| / ||x|| */
} cg_solver;

/* What is wrong with so many ranks for this size, one line; NULL if nothing is. */
const char *cg_refusal(int ranks, const cg_size *);

/* Collective.  Ranks must be such that cg_refusal() is NULL. */
cg_solver *cg_create(app *, const cg_size *, cg_exchange);
void cg_destroy(cg_solver *);

void cg_start(cg_solver *);             /* x = (1, 1, ..., 1) */
void cg_iterate(cg_solver *);           /* one outer iteration: CG_STEPS steps, zeta, a new x */
double cg_flops(const cg_size *, double elements);      /* of one outer iteration by definition: as one rank does them */

extern const app_program cg_program, cg_doubling_program;

#endif
