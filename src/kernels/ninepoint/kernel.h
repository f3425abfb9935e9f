#ifndef PLUMBLINE_NINEPOINT_H
#define PLUMBLINE_NINEPOINT_H

#include "plumbline.h"

/* REL of the source, which does not say its value: not a whole number, so that no compiler leaves the product out, and
 * exact in binary. */
#define NINEPOINT_REL 0.75

/* Of the columns first to last - 1 the points from <= i < to; columns of an array lie `ld` elements apart. */
typedef void ninepoint_loop(size_t ld, size_t first, size_t last, size_t from, size_t to, const double *restrict x,
                            const double *restrict y, double *restrict aa, double *restrict dd, double *restrict rx,
                            double *restrict ry);

ninepoint_loop ninepoint_plain;
#ifdef PL_FORTRAN
ninepoint_loop ninepoint_fortran;
#endif

#endif
