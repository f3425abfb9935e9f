/* Two proofs that share no loop with the solver.
 *
 * The first step's equations: from du = u - (exact solution of time 0), the product of the three factors is worked out point
 * by point, in pressure and velocities, not in characteristics, with neighbours that come with the edges of blocks, not
 * along lines; the right-hand side from the exact solution, without any exchange.  What is left is rounding.
 *
 * The error against the exact solution at any time: of the order h^2. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "sp.h"

/* Rounding of numbers of about 1, which three factors make greater; a wrong coefficient or neighbour leaves 1e-7 and more. */
double sp_residual_bound(const sp *s)
{
    const double viscous = s->k.dt * sp_viscosity / (s->k.h * s->k.h), fourth = s->k.dt * sp_fourth / s->k.h;
    return 8 * DBL_EPSILON * pow(2 + 4 * viscous + 16 * fourth, SP_AXES);
}

/* Twice what the modes of problem.c come to at any time: their error is about 6 h^2. */
double sp_error_bound(const sp *s) { return 10 * s->k.h * s->k.h; }

double sp_error(sp *s)
{
    double worst = 0, at[SP_AXES];
    for (int m = 0; m < SP_COMPONENTS; m++)
        for (int z = 0; z < s->n[2]; z++)
            for (int y = 0; y < s->n[1]; y++)
                for (int x = 0; x < s->n[0]; x++) {
                    sp_position(s, x, y, z, at);
                    const double error = fabs(*sp_at(s, s->u, m, x, y, z) - sp_exact(m, at, s->steps * s->k.dt));
                    worst = error <= worst || isnan(worst) ? worst : error;     /* not a number counts, and stays */
                }
    return worst;
}

/* About a point, along an axis. */
typedef struct {
    double first, second, fourth;
} differences;

static void differ(const sp *s, double *const *array, int axis, int x, int y, int z, differences d[SP_COMPONENTS])
{
    const ptrdiff_t step = s->step[axis];
    for (int m = 0; m < SP_COMPONENTS; m++) {
        const double *const v = sp_at(s, array, m, x, y, z);
        d[m] = (differences){v[step] - v[-step], v[-step] - 2 * v[0] + v[step],
                             v[-2 * step] - 4 * v[-step] + 6 * v[0] - 4 * v[step] + v[2 * step]};
    }
}

/* What the operator along an axis makes of them in a time step. */
static double operate(const sp *s, int m, int axis, const double *at, const differences *d)
{
    const double flux = s->k.dt / (2 * s->k.h), viscous = s->k.dt * sp_viscosity / (s->k.h * s->k.h);
    double sum = -flux * sp_flow(axis, at) * d[m].first + viscous * d[m].second - sp_fourth * s->k.dt / s->k.h * d[m].fourth;
    if (m == 0)
        sum -= flux * sp_sound * d[1 + axis].first;
    if (m == 1 + axis)
        sum -= flux * sp_sound * d[0].first;
    return sum;
}

/* to = (I - A/2) from, along an axis. */
static void apply_factor(const sp *s, int axis, double *const *from, double *const *to)
{
    for (int z = 0; z < s->n[2]; z++)
        for (int y = 0; y < s->n[1]; y++)
            for (int x = 0; x < s->n[0]; x++) {
                differences d[SP_COMPONENTS];
                double at[SP_AXES];
                sp_position(s, x, y, z, at);
                differ(s, from, axis, x, y, z, d);
                for (int m = 0; m < SP_COMPONENTS; m++)
                    *sp_at(s, to, m, x, y, z) = *sp_at(s, from, m, x, y, z) - operate(s, m, axis, at, d) / 2;
            }
}

/* array = dt (A u + f) - array, of the exact solution, whose edges are known without any exchange. */
static void subtract_from_right_side(const sp *s, double *const *exact, double *const *array)
{
    const double t = sp_frequency * s->k.dt / 2, cos_t = cos(t), sin_t = sin(t);
    for (int z = 0; z < s->n[2]; z++)
        for (int y = 0; y < s->n[1]; y++)
            for (int x = 0; x < s->n[0]; x++) {
                differences d[SP_AXES][SP_COMPONENTS];
                double at[SP_AXES], cosine, sine;
                sp_position(s, x, y, z, at);
                for (int axis = 0; axis < SP_AXES; axis++)
                    differ(s, exact, axis, x, y, z, d[axis]);
                for (int m = 0; m < SP_COMPONENTS; m++) {
                    sp_force(m, at, &cosine, &sine);
                    double sum = s->k.dt * (cosine * cos_t + sine * sin_t);
                    for (int axis = 0; axis < SP_AXES; axis++)
                        sum += operate(s, m, axis, at, d[axis]);
                    *sp_at(s, array, m, x, y, z) = sum - *sp_at(s, array, m, x, y, z);
                }
            }
}

static double largest(const sp *s, double *const *array)
{
    double worst = 0;
    for (int m = 0; m < SP_COMPONENTS; m++)
        for (int z = 0; z < s->n[2]; z++)
            for (int y = 0; y < s->n[1]; y++)
                for (int x = 0; x < s->n[0]; x++) {
                    const double value = fabs(*sp_at(s, array, m, x, y, z));
                    worst = !(value <= worst) ? value : worst;      /* not a number counts */
                }
    return worst;
}

/* The exact solution of time 0, in the block and about it. */
static void fill_exact(const sp *s, double *const *array)
{
    double at[SP_AXES];
    for (int z = -SP_EDGE; z < s->n[2] + SP_EDGE; z++)
        for (int y = -SP_EDGE; y < s->n[1] + SP_EDGE; y++)
            for (int x = -SP_EDGE; x < s->n[0] + SP_EDGE; x++) {
                sp_position(s, x, y, z, at);
                for (int m = 0; m < SP_COMPONENTS; m++)
                    *sp_at(s, array, m, x, y, z) = sp_exact(m, at, 0);
            }
}

double sp_residual(sp *s)
{
    enum { EXACT, ONE, OTHER, SETS };
    double *const memory = app_memory(calloc(SETS * SP_COMPONENTS * (size_t)s->room, sizeof *memory));
    double *set[SETS][SP_COMPONENTS], *const *from = set[ONE], *const *to = set[OTHER];
    for (int i = 0; i < SETS * SP_COMPONENTS; i++)
        set[i / SP_COMPONENTS][i % SP_COMPONENTS] = memory + i * s->room;
    fill_exact(s, set[EXACT]);
    for (int m = 0; m < SP_COMPONENTS; m++)
        for (ptrdiff_t i = 0; i < s->room; i++)
            set[ONE][m][i] = s->u[m][i] - set[EXACT][m][i];
    for (int axis = SP_AXES - 1; axis >= 0; axis--) {
        sp_exchange_edges(s, from);
        apply_factor(s, axis, from, to);
        double *const *const done = to;
        to = from;
        from = done;
    }
    subtract_from_right_side(s, set[EXACT], from);
    const double worst = largest(s, from);
    free(memory);
    return worst;
}
