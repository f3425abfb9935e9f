/* Seven-point Jacobi sweep in three dimensions: 8 flops per point, 7 loads and 1 store of 8 bytes.
 *
 * The second stencil beside anderson1997's (ninepoint): what it gets of the memory's bandwidth depends on which of the seven
 * loads find their line in a cache, the layer condition (jacobi.c).  A sweep reads `in` and writes `out`, and so does the
 * next one, so that every pass does the same. */
#include "kernel.h"

void jacobi_plain(const jacobi_box *box, size_t first, size_t last, double *restrict out, const double *restrict in)
{
    const size_t n = box->n, row = box->row, plane = box->plane;
    for (size_t k = first; k < last; k++)
        for (size_t j = box->from; j < box->to; j++) {
            const double *restrict u = in + k * plane + j * row;
            double *restrict v = out + k * plane + j * row;
            for (size_t i = 1; i < n - 1; i++)
                v[i] = JACOBI_CENTRE * u[i] + JACOBI_NEIGHBOUR * ((u[i - 1] + u[i + 1]) + (u[i - row] + u[i + row]) +
                                                                  (u[i - plane] + u[i + plane]));
        }
}

/* blocked: `block` rows of all planes, then the next ones. */
void jacobi_blocked(const jacobi_box *box, size_t first, size_t last, double *restrict out, const double *restrict in)
{
    const size_t n = box->n, row = box->row, plane = box->plane;
    for (size_t begin = box->from; begin < box->to; begin += box->block)
        for (size_t k = first; k < last; k++)
            for (size_t j = begin; j < pl_least(begin + box->block, box->to); j++) {
                const double *restrict u = in + k * plane + j * row;
                double *restrict v = out + k * plane + j * row;
                for (size_t i = 1; i < n - 1; i++)
                    v[i] = JACOBI_CENTRE * u[i] + JACOBI_NEIGHBOUR * ((u[i - 1] + u[i + 1]) + (u[i - row] + u[i + row]) +
                                                                      (u[i - plane] + u[i + plane]));
            }
}

#if defined(__x86_64__)
#include <immintrin.h>

static inline double point(const double *u, size_t row, size_t plane)
{
    return JACOBI_CENTRE * u[0] + JACOBI_NEIGHBOUR * ((*(u - 1) + u[1]) + (*(u - row) + u[row]) + (*(u - plane) + u[plane]));
}

/* The order of blocked; plain's where a block has all rows.  What is needed next lies `distance` elements ahead in the next
 * plane, or, where the block ends before that, at its beginning in the plane after that. */
typedef void row_loop(const jacobi_box *box, double *v, const double *u, const double *ahead);

static inline __attribute__((always_inline)) void sweep(row_loop *compute, size_t block, const jacobi_box *box, size_t first,
                                                        size_t last, double *out, const double *in)
{
    for (size_t begin = box->from; begin < box->to; begin += block) {
        const size_t end = pl_least(begin + block, box->to);
        for (size_t k = first; k < last; k++)
            for (size_t j = begin; j < end; j++) {
                const size_t at = k * box->plane + j * box->row;
                const bool in_block = (end - j) * box->row > box->distance;
                compute(box, out + at, in + at,
                        in + at + box->plane + box->distance + (in_block ? 0 : box->plane - (end - begin) * box->row));
            }
    }
    _mm_sfence();
}

#define ARGUMENTS const jacobi_box *box, size_t first, size_t last, double *restrict out, const double *restrict in

#define PL_SIMD 512
#include "simd_loops.h"
#define PL_SIMD 256
#include "simd_loops.h"
#define PL_SIMD 128
#include "simd_loops.h"
#endif
