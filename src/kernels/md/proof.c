/* Whether it is physics: by sums over pairs that know nothing of lists and ghosts.  Errors are over what they may be: right up to 1. */
#include <math.h>
#include <stdlib.h>

#include "md.h"

/* Of the conserved energy, per atom, in a pass: what the integrator leaves of an atom's is random (four times what 256, 864 and 32,000
 * atoms have), and a little of it is the same for all, at the force that ends at the cutoff. */
static double drift_may_be(size_t n) { return 0.01 / sqrt((double)n) + 1e-5; }

/* Sums are rounded, and errors of rounding grow in a pass, by less. */
static const double force_may_be = 1e-9, momentum_may_be = 1e-9, place_may_be = 1e-8;

enum { ALL_PAIRS = 1000, SAMPLE = 256, MOVED = 16384 };     /* atoms whose whole motion, forces are computed anew; that are seen to have moved */

/* How far atoms come along their first velocities in a pass, over how far these alone would take them: 0.789, 0.783, 0.7825 where 864,
 * 16,384, 32,000 are moved; 0.74 in 18 of the 20 steps. */
static const double along = 0.783, along_may_be = 0.03;

static double potential(double r2)
{
    const double sixth = 1 / (r2 * r2 * r2), cut = pow(MD_CUTOFF, -6);
    return 4 * (sixth * (sixth - 1) - cut * (cut - 1));
}

/* Of an own atom in this cell: half of its potential energy, since the other atom, or the process that has it, counts the other half. */
static double half_potential(const md_system *s, const md_image *image, int64_t cell, int64_t i)
{
    double sum = 0;
    for (int plane = -MD_LAYERS; plane <= MD_LAYERS; plane++)
        for (int row = -MD_LAYERS; row <= MD_LAYERS; row++) {
            const int64_t at = cell + (int64_t)(plane * s->cells[1] + row) * s->cells[0];
            for (uint32_t e = image->begin[at - MD_LAYERS]; e < image->begin[at + MD_LAYERS + 1]; e++) {
                double r2 = 0;
                for (int d = 0; d < 3; d++) {
                    const double apart = image->x[4 * i + d] - image->x[4 * image->entry[e].index + d];
                    r2 += apart * apart;
                }
                if (r2 < MD_CUTOFF * MD_CUTOFF && image->entry[e].index != i)
                    sum += potential(r2) / 2;
            }
        }
    return sum;
}

void md_sums(const md_system *s, const md_image *image, const double *v, double sums[4])
{
    const int64_t cells = (int64_t)s->cells[0] * s->cells[1] * s->cells[2];
    sums[0] = sums[1] = sums[2] = sums[3] = 0;
    for (int64_t cell = 0; cell < cells; cell++)
        for (uint32_t k = image->begin[cell]; k < image->begin[cell + 1]; k++) {
            const int64_t i = image->entry[k].index;
            if (i >= (int64_t)image->n)
                continue;
            sums[3] += half_potential(s, image, cell, i);
            for (int d = 0; d < 3; d++) {
                sums[d] += v[4 * i + d];
                sums[3] += v[4 * i + d] * v[4 * i + d] / 2;
            }
        }
}

/* Adds what n atoms at `x` do to one that is at `own`, each at its nearest place; to f[3] the magnitudes. */
static void add_pairs(const md_system *s, const double *own, size_t n, const double *x, double f[4])
{
    for (size_t j = 0; j < n; j++) {
        double d[3], r2 = 0;
        for (size_t a = 0; a < 3; a++) {
            d[a] = own[a] - x[4 * j + a];
            d[a] -= s->box[a] * rint(d[a] / s->box[a]);
            r2 += d[a] * d[a];
        }
        if (r2 < MD_CUTOFF * MD_CUTOFF && r2 > 0)
            for (size_t a = 0; a < 3; a++) {
                const double part = d[a] * (48 * pow(r2, -7) - 24 * pow(r2, -4));
                f[a] += part;
                f[3] += fabs(part);
            }
    }
}

/* Of `few` atoms out of all, first and last among them: which one an own atom is; -1: none. */
static long chosen(const md_system *s, size_t few, const double *x)
{
    const size_t step = s->all / few, number = (size_t)x[3];
    return number % step == 0 && number / step < few ? (long)(number / step) : number + 1 == s->all ? (long)few : -1;
}

/* Four doubles of each of the chosen atoms, from whichever process has them. */
static void gather(const md_system *s, size_t few, const double *names, size_t n, const double *from, double *to, md_sum *sum)
{
    for (size_t i = 0; i < n; i++) {
        const long k = chosen(s, few, names + 4 * i);
        if (k >= 0)
            memcpy(to + 4 * k, from + 4 * i, 4 * sizeof *to);
    }
    sum(to, 4 * (few + 1));
}

static double wrong_forces(const md_system *s, size_t few, md_sum *sum)
{
    double *const x = pl_allocate(8 * (few + 1) * sizeof *x, "the verification"), *const f = x + 4 * (few + 1), worst = 0;
    gather(s, few, s->now.x, s->now.n, s->now.x, x, sum);
    for (size_t k = 0; k <= few; k++)
        add_pairs(s, x + 4 * k, s->now.n, s->now.x, f + 4 * k);
    sum(f, 4 * (few + 1));
    for (size_t i = 0; i < s->now.n; i++) {
        const long k = chosen(s, few, s->now.x + 4 * i);
        for (long a = 0; k >= 0 && a < 3; a++)
            worst = pl_worse(worst, fabs(s->f[4 * i + (size_t)a] - f[4 * k + a]) / (1 + f[4 * k + 3]) / force_may_be);
    }
    free(x);
    return worst;
}

/* Places after a pass: the same motion of all atoms, by one process, without lists. */
static double wrong_places(const md_system *s, md_sum *sum)
{
    const size_t n = s->all;
    double *const x = pl_allocate(12 * (n + 1) * sizeof *x, "the verification"), *const v = x + 4 * (n + 1), *const f = v + 4 * (n + 1);
    double worst = 0;
    gather(s, n, s->start.x, s->start.n, s->start.x, x, sum);
    gather(s, n, s->start.x, s->start.n, s->start_v, v, sum);
    for (int step = 0; step <= MD_STEPS; step++) {
        for (size_t i = 0; step && i < 4 * n; i++) {
            v[i] += i % 4 < 3 ? 0.5 * MD_STEP * f[i] : 0;
            x[i] += i % 4 < 3 ? MD_STEP * v[i] : 0;
        }
        memset(f, 0, 4 * n * sizeof *f);
        for (size_t i = 0; i < n; i++)
            add_pairs(s, x + 4 * i, n, x, f + 4 * i);
        for (size_t i = 0; step && i < 4 * n; i++)
            v[i] += i % 4 < 3 ? 0.5 * MD_STEP * f[i] : 0;
    }
    for (size_t i = 0; i < s->now.n; i++)
        for (size_t a = 0; a < 3; a++) {
            const double apart = s->now.x[4 * i + a] - x[4 * (size_t)s->now.x[4 * i + 3] + a];
            worst = pl_worse(worst, fabs(apart - s->box[a] * rint(apart / s->box[a])) / place_may_be);
        }
    free(x);
    return worst;
}

/* Where none moves, energy, momentum and forces are right as well. */
static double wrong_way(const md_system *s, md_sum *sum)
{
    const size_t few = s->all < MOVED ? s->all : MOVED;
    double *const from = pl_allocate(12 * (few + 1) * sizeof *from, "the verification");
    double *const v = from + 4 * (few + 1), *const to = v + 4 * (few + 1);
    double way = 0, alone = 0;
    gather(s, few, s->start.x, s->start.n, s->start.x, from, sum);
    gather(s, few, s->start.x, s->start.n, s->start_v, v, sum);
    gather(s, few, s->now.x, s->now.n, s->now.x, to, sum);
    for (size_t k = 0; k <= few; k++)
        for (size_t d = 0; d < 3; d++) {
            const double apart = to[4 * k + d] - from[4 * k + d];
            way += (apart - s->box[d] * rint(apart / s->box[d])) * v[4 * k + d];
            alone += MD_STEPS * MD_STEP * v[4 * k + d] * v[4 * k + d];
        }
    free(from);
    return fabs(way / alone - along) / along_may_be;
}

double md_energies(const md_system *s, double *before, double momentum[3], md_sum *sum)
{
    double sums[4];
    md_sums(s, &s->start, s->start_v, sums);
    sum(sums, 4);
    *before = sums[3];
    md_sums(s, &s->now, s->v, sums);
    sum(sums, 4);
    memcpy(momentum, sums, 3 * sizeof *momentum);
    return sums[3];
}

double md_proof(const md_system *s, md_sum *sum)
{
    double lost = s->clipped, before, momentum[3], worst;
    for (size_t i = 0; i < s->now.n; i++)
        for (size_t d = 0; d < 4; d++)
            if (!(fabs(s->now.x[4 * i + d]) < 1e15 && fabs(s->v[4 * i + d]) < 1e15 && fabs(s->f[4 * i + d]) < 1e15) ||
                s->now.x[4 * i + 3] != floor(s->now.x[4 * i + 3]) || !(s->now.x[4 * i + 3] >= 0) || s->now.x[4 * i + 3] >= (double)s->all)
                lost++;
    double there[2] = {lost, (double)s->now.n};
    sum(there, 2);
    if (there[0] > 0 || there[1] != (double)s->all)
        return INFINITY;
    worst = fabs(md_energies(s, &before, momentum, sum) - before) / (double)s->all / drift_may_be(s->all);
    for (int d = 0; d < 3; d++)
        worst = pl_worse(worst, fabs(momentum[d]) / (double)s->all / momentum_may_be);
    worst = pl_worse(worst, wrong_forces(s, s->all <= ALL_PAIRS ? s->all : SAMPLE, sum));
    return pl_worse(worst, s->all <= ALL_PAIRS ? wrong_places(s, sum) : wrong_way(s, sum));
}
