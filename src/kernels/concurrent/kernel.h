#ifndef PLUMBLINE_CONCURRENT_H
#define PLUMBLINE_CONCURRENT_H

#include "plumbline.h"

/* Options of the program's own, by position in `parameters`. */
enum { CONCURRENT_STREAMS, CONCURRENT_DISTANCE };

enum { CONCURRENT_LINE = PL_LINE / sizeof(double) };

/* Sum of one thread's n elements of x. */
typedef double concurrent_loop(size_t n, const double *restrict x, const long *parameters);

concurrent_loop concurrent_plain, concurrent_prefetch;

#endif
