#ifndef PLUMBLINE_MOTION_H
#define PLUMBLINE_MOTION_H

#include "plumbline.h"

/* Options of the program's own, by position in `parameters`. */
enum { MOTION_DISTANCE };

/* What fill stores. */
#define MOTION_CONSTANT 1.0

/* One motion of one thread's part: y is written, x is read; what has one vector only ignores the other.  Returns the
 * sum of what was loaded, 0 for the motions that sum nothing. */
typedef double motion_loop(size_t n, double *restrict y, const double *restrict x, const long *parameters);

motion_loop motion_fill, motion_load, motion_update, motion_copy;
motion_loop motion_fill_prefetch, motion_load_prefetch, motion_update_prefetch, motion_copy_prefetch;
#if defined(__x86_64__)
motion_loop motion_fill_nt_avx512, motion_fill_nt_avx2, motion_fill_nt_sse2;
motion_loop motion_copy_nt_avx512, motion_copy_nt_avx2, motion_copy_nt_sse2;
#endif

#endif
