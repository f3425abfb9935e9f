/* The work of a plane-wave code: the class of hager2007's EXX and Oak3D, many small transforms and dense products. */
#ifndef PLUMBLINE_PLANEWAVE_H
#define PLUMBLINE_PLANEWAVE_H

#include <complex.h>

#include "plumbline.h"

#ifndef CMPLX       /* glibc has it for gcc alone */
#define CMPLX(re, im) __builtin_complex((double)(re), (double)(im))
#endif

/* Bands are functions on a cube of n^3 points, x fastest, `stride` elements from one to the next. */
typedef struct {
    pl_buffers *buffers;
    size_t n, bands, stride;
    double complex *psi, *h;    /* the bands, and what has been made of them */
    double complex *s;          /* bands x bands, by columns: their products */
    double *laplace;            /* of each point in reciprocal space: -k^2 / n^3 */
    double complex *fourier;    /* n x n: exp(-2 pi i j k / n) */
    void *forward, *backward;   /* FFTW's plans */
    uint32_t plans;             /* a hash of them; 0: there are none */
    int calls_at_once;          /* by so many threads the BLAS may be called */
} planewave;

/* `own`: the bands of a thread. */
typedef void planewave_loop(pl_range own, const planewave *);
planewave_loop planewave_plain;
#ifdef PL_FFTW
planewave_loop planewave_fft, planewave_product, planewave_whole;
#endif

/* Plans, made once; which library. */
void planewave_open(planewave *);
void planewave_close(planewave *);
const char *planewave_library(void);
const char *planewave_plans(const planewave *);     /* for the record; of all processes */
#ifdef PL_FFTW
/* Of `count` lines, squares or cubes (rank 1, 2, 3) one behind the other, which are spoiled.  FFTW chooses by short measurements, another plan in
 * each process: the fastest of three. */
void *planewave_plan(planewave *, int rank, int count, double complex *in, double complex *out, bool back);
#endif

/* A line of n points, `step` apart, by the matrix; and the products of all bands with those of `own`, on `points` of each. */
void planewave_line(const planewave *, double complex *x, size_t step, bool back);
void planewave_products(pl_range own, const planewave *, size_t points);
#ifdef PL_FFTW
void planewave_multiply(pl_range own, const planewave *, size_t points);
#endif

/* waves.c: the waves that the bands are.  k is a whole number in each direction; the box has an edge of 2 pi. */
void planewave_wave(size_t n, size_t bands, size_t band, size_t k[3]);
double complex planewave_turn(size_t n, size_t k);                          /* exp(2 pi i k / n) */
double complex planewave_value(size_t n, const size_t k[3], size_t point);  /* of a wave, over the root of the number of points */
double planewave_eigenvalue(size_t n, const size_t k[3]);                   /* -k^2 */
double planewave_flops(size_t n, size_t bands, bool transforms, bool products);
double planewave_error(const planewave *, pl_range own, bool laplacian, bool products);     /* of own points, over the largest k^2 */
double planewave_tolerance(size_t n);

/* Where they lie: psi is the first of the buffers. */
#define PLANEWAVE_BANDS {"bands", 32, 1, "functions on the grid", .most = 4096, .of_data = true}
void planewave_check(const pl_case *, size_t bands);
size_t planewave_footprint(size_t n, size_t bands, size_t stride);
void planewave_create(planewave *, const pl_case *, size_t bands, size_t stride);

#endif
