#ifndef PLUMBLINE_SPMV_GENERATOR_H
#define PLUMBLINE_SPMV_GENERATOR_H

#include "matrix.h"

/* The vectors of the recipe, and which of them hold each row: fills rows, columns, exact, vectors, users, user, ptr, longest. */
void spmv_generate(spmv_source *);

/* spmv_row() of a generated matrix. */
size_t spmv_generated_row(const spmv_source *, size_t row, uint64_t *work, int32_t *column, double *value);

/* y += A x, the vectors drawn anew and no row ever made. */
void spmv_by_vectors(const spmv_source *, double *y);

#endif
