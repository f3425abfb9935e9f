/* The loops of the limit streams.  Each works on a thread's part of the four quarters of the working set: `lines` cache
 * lines of 8 doubles from each of a, b, c, d, all aligned to a line.  The load loops return a sum; it is used. */
#ifndef PLUMBLINE_STREAMS_H
#define PLUMBLINE_STREAMS_H

#include <stddef.h>

typedef double pl_stream(size_t lines, double *a, double *b, double *c, double *d);

pl_stream pl_load_plain, pl_load_many, pl_store_plain, pl_update_plain, pl_copy_plain, pl_triad_plain;
#if defined(__x86_64__)
pl_stream pl_load_avx2, pl_store_avx2, pl_update_avx2, pl_copy_avx2, pl_triad_avx2;
pl_stream pl_store_nt_avx2, pl_copy_nt_avx2, pl_triad_nt_avx2;
pl_stream pl_load_avx512, pl_store_avx512, pl_update_avx512, pl_copy_avx512, pl_triad_avx512;
pl_stream pl_store_nt_avx512, pl_copy_nt_avx512, pl_triad_nt_avx512;
#endif

#endif
