#ifndef PLUMBLINE_TRAPEZOID_H
#define PLUMBLINE_TRAPEZOID_H

#include "plumbline.h"

/* Partial sums of the vectorised loops: enough for the widest vectors and the latency of an addition. */
enum { TRAPEZOID_LANES = 32 };

/* The integral of f over the steps begin .. end - 1 of width h, the first of which begins at a + begin h. */
typedef double trapezoid_loop(int begin, int end, double a, double h);

trapezoid_loop trapezoid_original, trapezoid_shared, trapezoid_vectorised, trapezoid_restructured;

/* The same loops, which count their operations (count.c). */
trapezoid_loop counted_original, counted_shared, counted_vectorised, counted_restructured;

#endif
