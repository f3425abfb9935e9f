/* The seven kernels: what each is to the program that measures it (nas.c).  The loops are in KERNEL.F90, once as they were written for
 * vector computers, `unchanged`, and once for caches, `optimised`; each is compiled once for every set of options. */
#ifndef PLUMBLINE_NAS_H
#define PLUMBLINE_NAS_H

#include "plumbline.h"
#include "sizes.h"

enum { NAS_ARRAYS = 4 };

typedef struct {
    const char *name, *title;
    size_t doubles[NAS_ARRAYS];     /* of each array that the loop gets; 0: none */
    double flops;                   /* additions, multiplications, divisions, square roots, and calls of intrinsics, each one */
    /* The largest error that any order of the operations, and functions good to 4 units in the last place, can give.
     * Measured with gfortran 12: a tenth of it at the most. */
    double tolerance;
    void (*fill)(bool optimised, double *const x[NAS_ARRAYS]);      /* what the loop gets; outputs are not a number already */
    /* Against another way to the same result. */
    double (*error)(bool optimised, double *const given[NAS_ARRAYS], double *const found[NAS_ARRAYS]);
} nas_kernel;

extern const nas_kernel nas;        /* of the program's kernel */

/* Where element e of line k lies, of `elements` in each line: line by line, or a strip of lines side by side. */
static inline size_t nas_in_strip(bool optimised, size_t strip, size_t elements, size_t k, size_t e)
{
    return optimised ? k % strip + strip * (e + elements * (k / strip)) : e + elements * k;
}

/* Between 0 and 1, of 32 random bits. */
static inline double nas_random(size_t i) { return pl_mix(i) * 0x1p-32; }

/* The stream function of a row of vortices, one in each period of 2 pi, of strength 1: the kernels' expression in another form. */
double nas_stream(double along, double across);

#endif
