/* The D3Q19 lattice: its box in memory, its loops, and the physics that they are verified by.  The program of threads (lbm.c) and that of
 * processes (src/mpi/lbm) have the same loops. */
#ifndef PLUMBLINE_LBM_LATTICE_H
#define PLUMBLINE_LBM_LATTICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plumbline.h"

/* Populations of a cell: at rest, along the axes, along the diagonals of the planes of two axes; 2 m - 1 and 2 m move in opposite
 * directions. */
enum { LBM_POPULATIONS = 19 };

/* A box of n cells in each row, `rows` rows in each plane, around it a layer of ghost cells: cell (i, j, k), from 0 to n + 1, rows + 1 and
 * planes + 1, is i + j * row + k * plane doubles from a population's first one, and that q * apart from the first population's. */
typedef struct {
    size_t n, rows, planes, row, plane, apart;
} lbm_box;

lbm_box lbm_box_of(size_t n, size_t rows, size_t planes);
size_t lbm_doubles(const lbm_box *);        /* of one lattice, all populations */

/* Relaxation rate: a viscosity of (1 / rate - 1/2) / 3 = 1/10 in lattice units. */
#define LBM_RATE 1.25

/* What a cell update has by the loops: floating-point operations, those of the division among them. */
enum { LBM_FLOPS = 163 };

/* A time step of the interior rows first to last - 1, numbered plane by plane: what moves to a cell is collected and collides there. */
typedef void lbm_loop(const lbm_box *, size_t first, size_t last, double *out, const double *in);
lbm_loop lbm_split, lbm_fused, lbm_buffered;
#if defined(__x86_64__)
lbm_loop lbm_nt_avx512, lbm_nt_avx2, lbm_nt_sse2;
#endif

/* --- as the textbooks write it, for the proof ----------------------------------------------------------------- */

extern const int lbm_velocity[LBM_POPULATIONS][3];
double lbm_weight(int q);

/* Density and momentum of a cell's populations. */
void lbm_moments(const double *f, double *density, double *momentum);

/* The equilibrium of a density and velocity, to second order. */
void lbm_equilibrium(double density, const double *velocity, double *f);

/* f after the collision. */
void lbm_collide(double *f);

/* The cells beyond the box's edges along x (0) and y (1), and z (2), are those within at the other end: of all populations. */
void lbm_wrap(const lbm_box *, double *f, int axis);

/* Populations near equilibrium at rest, each cell's another, without a period along a row; those of a row have a key in common. */
static inline uint32_t lbm_key(int q, size_t j, size_t k) { return pl_mix((uint64_t)q << 58 | j << 29 | k); }

static inline double lbm_value(double weight, uint32_t key, size_t i)
{
    return weight * (1 + (double)((pl_mix(i) ^ key) & 1023) / 8192);
}

/* Which of so many cells one is, or stands for as a ghost: the box is periodic. */
static inline size_t lbm_within(size_t at, size_t cells) { return (at + cells - 1) % cells + 1; }

/* Of a row of cells after a step from those populations: largest error.  What moves there has collided as the textbook says, and neither
 * mass nor momentum is lost.
 *
 * out: where the row begins in population 0; k: its plane among `planes` of the whole box. */
double lbm_error_of_row(const lbm_box *, const double *out, size_t j, size_t k, size_t planes);

/* Roundings of sums of 19 populations, of which the largest is 3/8. */
#define LBM_TOLERANCE (16 * 0x1p-52)

/* A Taylor-Green vortex in the plane of the axes a and b, which fills `cells` of each axis once: an exact solution of the Navier-Stokes
 * equations, whose velocity decays with exp(- viscosity (ka^2 + kb^2) t). */
typedef struct {
    int a, b;
    size_t cells[3];
} lbm_vortex;

/* Of a box whose planes are the vortex's from `first` on: starts its cells, or sums up their parts of the velocity's amplitude along a;
 * the other lattice is NULL. */
double lbm_vortex_cells(const lbm_vortex *, const lbm_box *, size_t first, double *start, const double *sum);

/* How long a vortex is watched: from the step at which it has found its non-equilibrium part; and how far the viscosity that is measured so
 * may be from theory's: the method is of second order, and a wave has 16 cells or more. */
enum { LBM_VORTEX_CELLS = 16, LBM_VORTEX_BEGIN = 20, LBM_VORTEX_END = 60 };
#define LBM_VORTEX_TOLERANCE 0.02

/* Viscosity over theory's, by the amplitudes at two steps; and that of a loop, in a box of its own: not a number without memory. */
double lbm_viscosity(const lbm_vortex *, double begin, double end);
double lbm_measured_viscosity(const lbm_vortex *, lbm_loop *);

#endif
