/* A time step of a lattice Boltzmann fluid, D3Q19 with the collision of Bhatnagar, Gross and Krook (Qian, d'Humieres, Lallemand, Europhys.
 * Lett. 17, 479, 1992), in double precision: the counterpart of TRATS (hager2007, section 4.1).
 *
 * Two lattices, each population an array of its own: 19 loads from 19 places and 19 stores to 19 others, 0.4 words and more per flop.  A step
 * reads `in` and writes `out`, and so does the next one, so that every pass does the same.  After Wellein, Zeiser, Hager, Donath, Computers &
 * Fluids 35, 910 (2006). */
#include "lattice.h"

#if defined(__clang__)
#define CELLS_ARE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define CELLS_ARE_INDEPENDENT _Pragma("GCC ivdep")
#endif

enum { Q = LBM_POPULATIONS };
static const double keep = 1 - LBM_RATE;

/* Where in `in` the population is that moves to a cell, from the cell's own place in population 0. */
static inline void places(const lbm_box *box, ptrdiff_t *from)
{
    for (int q = 0; q < Q; q++) {
        const int *const c = lbm_velocity[q];
        from[q] = (ptrdiff_t)(box->apart * (size_t)q) - c[0] - c[1] * (ptrdiff_t)box->row - c[2] * (ptrdiff_t)box->plane;
    }
}

static inline size_t begin_of(const lbm_box *box, size_t row)
{
    return 1 + (row % box->rows + 1) * box->row + (row / box->rows + 1) * box->plane;
}

/* `cells` cells: populations from f + from[q], which collide, to g + q * apart. */
static inline __attribute__((always_inline)) void collide(double *g, size_t apart, const double *f, const ptrdiff_t *from, size_t cells)
{
    const double *const f0 = f + from[0], *const f1 = f + from[1], *const f2 = f + from[2], *const f3 = f + from[3], *const f4 = f + from[4];
    const double *const f5 = f + from[5], *const f6 = f + from[6], *const f7 = f + from[7], *const f8 = f + from[8], *const f9 = f + from[9];
    const double *const f10 = f + from[10], *const f11 = f + from[11], *const f12 = f + from[12], *const f13 = f + from[13],
                        *const f14 = f + from[14];
    const double *const f15 = f + from[15], *const f16 = f + from[16], *const f17 = f + from[17], *const f18 = f + from[18];
    CELLS_ARE_INDEPENDENT
    for (size_t i = 0; i < cells; i++) {
        const double x_p = f1[i], x_m = f2[i], y_p = f3[i], y_m = f4[i], z_p = f5[i], z_m = f6[i];
        const double xy_p = f7[i], xy_m = f8[i], yx_p = f9[i], yx_m = f10[i];          /* along (1, 1, 0); (1, -1, 0) */
        const double xz_p = f11[i], xz_m = f12[i], zx_p = f13[i], zx_m = f14[i];       /* (1, 0, 1); (1, 0, -1) */
        const double yz_p = f15[i], yz_m = f16[i], zy_p = f17[i], zy_m = f18[i];       /* (0, 1, 1); (0, 1, -1) */

        const double density = f0[i] + ((x_p + x_m) + (y_p + y_m) + (z_p + z_m)) + ((xy_p + xy_m) + (yx_p + yx_m)) +
                               ((xz_p + xz_m) + (zx_p + zx_m)) + ((yz_p + yz_m) + (zy_p + zy_m));
        const double xy = xy_p - xy_m, yx = yx_p - yx_m, xz = xz_p - xz_m, zx = zx_p - zx_m, yz = yz_p - yz_m, zy = zy_p - zy_m;
        const double volume = 1 / density;
        const double u = ((x_p - x_m) + (xy + yx) + (xz + zx)) * volume;
        const double v = ((y_p - y_m) + (xy - yx) + (yz + zy)) * volume;
        const double w = ((z_p - z_m) + (xz - zx) + (yz - zy)) * volume;

        /* Weights 1/3, 1/18, 1/36 times density and rate; a pair's equilibrium is even +- odd. */
        const double diagonal = LBM_RATE / 36 * density, axis = 2 * diagonal, rest = 1 - 1.5 * (u * u + v * v + w * w);
        const double odd_of_axis = 3 * axis, odd_of_diagonal = 3 * diagonal;
        g[i] = keep * f0[i] + 12 * diagonal * rest;

        const double even_x = axis * (rest + 4.5 * u * u), odd_x = odd_of_axis * u;
        g[1 * apart + i] = keep * x_p + (even_x + odd_x);
        g[2 * apart + i] = keep * x_m + (even_x - odd_x);
        const double even_y = axis * (rest + 4.5 * v * v), odd_y = odd_of_axis * v;
        g[3 * apart + i] = keep * y_p + (even_y + odd_y);
        g[4 * apart + i] = keep * y_m + (even_y - odd_y);
        const double even_z = axis * (rest + 4.5 * w * w), odd_z = odd_of_axis * w;
        g[5 * apart + i] = keep * z_p + (even_z + odd_z);
        g[6 * apart + i] = keep * z_m + (even_z - odd_z);

        const double u_v = u + v, even_xy = diagonal * (rest + 4.5 * u_v * u_v), odd_xy = odd_of_diagonal * u_v;
        g[7 * apart + i] = keep * xy_p + (even_xy + odd_xy);
        g[8 * apart + i] = keep * xy_m + (even_xy - odd_xy);
        const double u_of_v = u - v, even_yx = diagonal * (rest + 4.5 * u_of_v * u_of_v), odd_yx = odd_of_diagonal * u_of_v;
        g[9 * apart + i] = keep * yx_p + (even_yx + odd_yx);
        g[10 * apart + i] = keep * yx_m + (even_yx - odd_yx);
        const double u_w = u + w, even_xz = diagonal * (rest + 4.5 * u_w * u_w), odd_xz = odd_of_diagonal * u_w;
        g[11 * apart + i] = keep * xz_p + (even_xz + odd_xz);
        g[12 * apart + i] = keep * xz_m + (even_xz - odd_xz);
        const double u_of_w = u - w, even_zx = diagonal * (rest + 4.5 * u_of_w * u_of_w), odd_zx = odd_of_diagonal * u_of_w;
        g[13 * apart + i] = keep * zx_p + (even_zx + odd_zx);
        g[14 * apart + i] = keep * zx_m + (even_zx - odd_zx);
        const double v_w = v + w, even_yz = diagonal * (rest + 4.5 * v_w * v_w), odd_yz = odd_of_diagonal * v_w;
        g[15 * apart + i] = keep * yz_p + (even_yz + odd_yz);
        g[16 * apart + i] = keep * yz_m + (even_yz - odd_yz);
        const double v_of_w = v - w, even_zy = diagonal * (rest + 4.5 * v_of_w * v_of_w), odd_zy = odd_of_diagonal * v_of_w;
        g[17 * apart + i] = keep * zy_p + (even_zy + odd_zy);
        g[18 * apart + i] = keep * zy_m + (even_zy - odd_zy);
    }
}

/* split: all populations move, then those of all cells collide: a loop each. */
void lbm_split(const lbm_box *box, size_t first, size_t last, double *out, const double *in)
{
    ptrdiff_t from[Q], own[Q];
    places(box, from);
    for (int q = 0; q < Q; q++)
        own[q] = (ptrdiff_t)(box->apart * (size_t)q);
    for (size_t row = first; row < last; row++) {
        const size_t at = begin_of(box, row);
        for (int q = 0; q < Q; q++) {
            const double *restrict f = in + at + from[q];
            double *restrict g = out + at + own[q];
            for (size_t i = 0; i < box->n; i++)
                g[i] = f[i];
        }
    }
    for (size_t row = first; row < last; row++)
        collide(out + begin_of(box, row), box->apart, out + begin_of(box, row), own, box->n);
}

/* fused: one loop. */
void lbm_fused(const lbm_box *box, size_t first, size_t last, double *out, const double *in)
{
    ptrdiff_t from[Q];
    places(box, from);
    for (size_t row = first; row < last; row++)
        collide(out + begin_of(box, row), box->apart, in + begin_of(box, row), from, box->n);
}

/* Cells whose populations stay in L1 while they are collected and handed on. */
enum { CHUNK = 64 };

/* Writes what has collided in a buffer, population by population. */
typedef void write_row(double *to, const double *from, size_t cells);

static inline __attribute__((always_inline)) void by_chunks(write_row *write, const lbm_box *box, size_t first, size_t last, double *out,
                                                            const double *in)
{
    _Alignas(64) double buffer[Q * CHUNK];
    ptrdiff_t from[Q];
    places(box, from);
    for (size_t row = first; row < last; row++)
        for (size_t i = 0; i < box->n; i += CHUNK) {
            const size_t at = begin_of(box, row) + i, cells = pl_least(CHUNK, box->n - i);
            collide(buffer, CHUNK, in + at, from, cells);
            for (int q = 0; q < Q; q++)
                write(out + at + (size_t)q * box->apart, buffer + q * CHUNK, cells);
        }
}

static inline void write_plain(double *restrict to, const double *restrict from, size_t cells)
{
    for (size_t i = 0; i < cells; i++)
        to[i] = from[i];
}

/* buffered: fused, by chunks through a buffer: one stream is written at a time. */
void lbm_buffered(const lbm_box *box, size_t first, size_t last, double *out, const double *in)
{
    by_chunks(write_plain, box, first, last, out, in);
}

#if defined(__x86_64__)
#define PL_SIMD 512
#include "simd_loops.h"
#define PL_SIMD 256
#include "simd_loops.h"
#define PL_SIMD 128
#include "simd_loops.h"
#endif
