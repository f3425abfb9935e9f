/* Packing and unpacking by hand: columns of a matrix of n x n doubles that is stored by rows, one after the other. */
#ifndef DATATYPE_LOOPS_H
#define DATATYPE_LOOPS_H

#include <stddef.h>

typedef void datatype_loop(size_t n, const double *restrict from, double *restrict to);
datatype_loop pack_plain, pack_blocked, unpack_plain, unpack_blocked;

#endif
