/* Forces between atoms: for each neighbour of a list the distance, and where it is below the cutoff the Lennard-Jones force.  The ways
 * differ in what stands in the lists, and in who makes vectors of it. */
#include "md.h"

/* full: each pair twice, once for each of its atoms; nothing is stored but an atom's own force. */
void md_full(pl_range part, const md_lists *l, const double *restrict x, double *restrict f)
{
    for (size_t i = part.begin; i < part.end; i++) {
        const int32_t *const neighbour = l->neighbour + l->begin[i];
        double fx = 0, fy = 0, fz = 0;
        for (int32_t k = 0; k < l->count[i]; k++) {
            const double *const other = x + 4 * (size_t)neighbour[k];
            const double dx = x[4 * i] - other[0], dy = x[4 * i + 1] - other[1], dz = x[4 * i + 2] - other[2];
            const double r2 = dx * dx + dy * dy + dz * dz;
            if (r2 < MD_CUTOFF * MD_CUTOFF) {
                const double force = md_force(r2);
                fx += force * dx;
                fy += force * dy;
                fz += force * dz;
            }
        }
        f[4 * i] = fx;
        f[4 * i + 1] = fy;
        f[4 * i + 2] = fz;
        f[4 * i + 3] = 0;
    }
}

/* half: each pair of a thread's own atoms once, its force added to both. */
void md_half(pl_range part, const md_lists *l, const double *restrict x, double *restrict f)
{
    for (size_t i = part.begin; i < part.end; i++) {
        const int32_t *const neighbour = l->neighbour + l->begin[i];
        double fx = 0, fy = 0, fz = 0;
        for (int32_t k = 0; k < l->count[i]; k++) {
            const size_t j = (size_t)neighbour[k];
            const double dx = x[4 * i] - x[4 * j], dy = x[4 * i + 1] - x[4 * j + 1], dz = x[4 * i + 2] - x[4 * j + 2];
            const double r2 = dx * dx + dy * dy + dz * dz;
            if (r2 < MD_CUTOFF * MD_CUTOFF) {
                const double force = md_force(r2);
                fx += force * dx;
                fy += force * dy;
                fz += force * dz;
                if (k < l->mutual[i]) {
                    f[4 * j] -= force * dx;
                    f[4 * j + 1] -= force * dy;
                    f[4 * j + 2] -= force * dz;
                }
            }
        }
        f[4 * i] += fx;
        f[4 * i + 1] += fy;
        f[4 * i + 2] += fz;
    }
}

#if defined(__x86_64__)
#define PL_SIMD 512
#include "simd_loops.h"
#define PL_SIMD 256
#include "simd_loops.h"
#endif
