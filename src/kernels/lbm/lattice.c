/* The lattice as textbooks have it: nothing here is shared with the loops but the velocities. */
#include "lattice.h"

#include <math.h>
#include <stdlib.h>

const int lbm_velocity[LBM_POPULATIONS][3] = {
    {0, 0, 0},  {1, 0, 0},    {-1, 0, 0},  {0, 1, 0},  {0, -1, 0},   {0, 0, 1},  {0, 0, -1},  {1, 1, 0},  {-1, -1, 0}, {1, -1, 0},
    {-1, 1, 0}, {1, 0, 1},    {-1, 0, -1}, {1, 0, -1}, {-1, 0, 1},   {0, 1, 1},  {0, -1, -1}, {0, 1, -1}, {0, -1, 1},
};

/* Whole cache lines, an odd number of them, so that neighbours in rows and planes never fall into one set; and populations 3 lines apart
 * from a multiple of 4096 bytes: 38 streams do not meet in the sets of L1, nor does a load wait for a store to the same place of a page. */
enum { LINE = 8, PAGE = 512 };

static size_t odd_lines(size_t doubles) { return ((doubles + LINE - 1) / LINE | 1) * LINE; }

lbm_box lbm_box_of(size_t n, size_t rows, size_t planes)
{
    lbm_box box = {.n = n, .rows = rows, .planes = planes, .row = odd_lines(n + 2)};
    box.plane = odd_lines((rows + 2) * box.row);
    box.apart = ((planes + 2) * box.plane + PAGE - 1) / PAGE * PAGE + 3 * LINE;
    return box;
}

size_t lbm_doubles(const lbm_box *box) { return LBM_POPULATIONS * box->apart; }

double lbm_weight(int q)
{
    const int *const c = lbm_velocity[q], length = c[0] * c[0] + c[1] * c[1] + c[2] * c[2];
    return length == 0 ? 1. / 3 : length == 1 ? 1. / 18 : 1. / 36;
}

void lbm_moments(const double *f, double *density, double *momentum)
{
    *density = momentum[0] = momentum[1] = momentum[2] = 0;
    for (int q = 0; q < LBM_POPULATIONS; q++) {
        *density += f[q];
        for (int a = 0; a < 3; a++)
            momentum[a] += lbm_velocity[q][a] * f[q];
    }
}

void lbm_equilibrium(double density, const double *velocity, double *f)
{
    double square = 0;
    for (int a = 0; a < 3; a++)
        square += velocity[a] * velocity[a];
    for (int q = 0; q < LBM_POPULATIONS; q++) {
        double along = 0;
        for (int a = 0; a < 3; a++)
            along += lbm_velocity[q][a] * velocity[a];
        f[q] = lbm_weight(q) * density * (1 + 3 * along + 4.5 * along * along - 1.5 * square);
    }
}

void lbm_collide(double *f)
{
    double density, velocity[3], equilibrium[LBM_POPULATIONS];
    lbm_moments(f, &density, velocity);
    for (int a = 0; a < 3; a++)
        velocity[a] /= density;
    lbm_equilibrium(density, velocity, equilibrium);
    for (int q = 0; q < LBM_POPULATIONS; q++)
        f[q] += LBM_RATE * (equilibrium[q] - f[q]);
}

void lbm_wrap(const lbm_box *box, double *f, int axis)
{
    const size_t cells = (size_t[]){box->n, box->rows, box->planes}[axis], step = (size_t[]){1, box->row, box->plane}[axis];
    const size_t rows = axis == 1 ? 1 : box->rows + 2, planes = axis == 2 ? 1 : box->planes + 2, n = axis == 0 ? 1 : box->n + 2;
    for (int q = 0; q < LBM_POPULATIONS; q++) {
        /* Of the ghosts only what moves into the box is read; the other half of them stays as it is. */
        const int into = lbm_velocity[q][axis];
        if (into == 0)
            continue;
        const size_t ghost = into > 0 ? 0 : (cells + 1) * step, within = into > 0 ? cells * step : step;
        double *const own = f + (size_t)q * box->apart;
        for (size_t k = 0; k < planes; k++)
            for (size_t j = 0; j < rows; j++) {
                double *const at = own + k * box->plane + j * box->row;
                for (size_t i = 0; i < n; i++)
                    at[ghost + i] = at[within + i];
            }
    }
}

double lbm_error_of_row(const lbm_box *box, const double *out, size_t j, size_t k, size_t planes)
{
    uint32_t keys[LBM_POPULATIONS];
    double worst = 0;
    for (int q = 0; q < LBM_POPULATIONS; q++)
        keys[q] = lbm_key(q, lbm_within(j - (size_t)lbm_velocity[q][1], box->rows), lbm_within(k - (size_t)lbm_velocity[q][2], planes));
    for (size_t i = 1; i <= box->n; i++) {
        double expected[LBM_POPULATIONS], found[LBM_POPULATIONS], before[4], after[4];
        for (int q = 0; q < LBM_POPULATIONS; q++) {
            expected[q] = lbm_value(lbm_weight(q), keys[q], lbm_within(i - (size_t)lbm_velocity[q][0], box->n));
            found[q] = out[(size_t)q * box->apart + i];
        }
        lbm_moments(expected, &before[0], &before[1]);
        lbm_moments(found, &after[0], &after[1]);
        lbm_collide(expected);
        for (int q = 0; q < LBM_POPULATIONS; q++)
            worst = pl_worse(worst, fabs(found[q] - expected[q]));
        for (int m = 0; m < 4; m++)
            worst = pl_worse(worst, fabs(after[m] - before[m]));
    }
    return worst;
}

/* --- Taylor and Green's vortex -------------------------------------------------------------------------------- */

static const double speed = 0.02, full_circle = 6.283185307179586;

static double wave(const lbm_vortex *v, int axis) { return full_circle / (double)v->cells[axis]; }

static double phase(const lbm_vortex *v, int axis, const size_t *cell) { return wave(v, axis) * ((double)cell[axis] + 0.5); }

/* Of a time step, by theory. */
static double decay(const lbm_vortex *v)
{
    const double viscosity = (1 / LBM_RATE - 0.5) / 3;
    return viscosity * (wave(v, v->a) * wave(v, v->a) + wave(v, v->b) * wave(v, v->b));
}

static void start_cell(const lbm_vortex *v, const size_t *cell, double *f)
{
    const double a = phase(v, v->a, cell), b = phase(v, v->b, cell), ratio = wave(v, v->a) / wave(v, v->b);
    double velocity[3] = {0, 0, 0};
    velocity[v->a] = speed * cos(a) * sin(b);
    velocity[v->b] = -ratio * speed * sin(a) * cos(b);
    /* Pressure, a third of the density's change, of the vortex: minus (cos 2a + ratio^2 cos 2b) speed^2 / 4. */
    lbm_equilibrium(1 - 0.75 * speed * speed * (cos(2 * a) + ratio * ratio * cos(2 * b)), velocity, f);
}

static double part_of_cell(const lbm_vortex *v, const size_t *cell, const double *f)
{
    double density, momentum[3];
    lbm_moments(f, &density, momentum);
    return momentum[v->a] / density * cos(phase(v, v->a, cell)) * sin(phase(v, v->b, cell));
}

double lbm_viscosity(const lbm_vortex *v, double begin, double end)
{
    return log(begin / end) / (decay(v) * (LBM_VORTEX_END - LBM_VORTEX_BEGIN));
}

double lbm_vortex_cells(const lbm_vortex *v, const lbm_box *box, size_t first, double *start, const double *sum)
{
    double total = 0, f[LBM_POPULATIONS];
    for (size_t k = 1; k <= box->planes; k++)
        for (size_t j = 1; j <= box->rows; j++)
            for (size_t i = 1; i <= box->n; i++) {
                const size_t at = i + j * box->row + k * box->plane, cell[] = {i, j, first + k};
                if (start)
                    start_cell(v, cell, f);
                for (size_t q = 0; q < LBM_POPULATIONS; q++)
                    if (start)
                        start[q * box->apart + at] = f[q];
                    else
                        f[q] = sum[q * box->apart + at];
                total += start ? 0 : part_of_cell(v, cell, f);
            }
    return total;
}

double lbm_measured_viscosity(const lbm_vortex *v, lbm_loop *loop)
{
    const lbm_box box = lbm_box_of(v->cells[0], v->cells[1], v->cells[2]);
    const size_t bytes = (lbm_doubles(&box) + LINE) * sizeof(double);
    double *const memory[] = {aligned_alloc(64, bytes), aligned_alloc(64, bytes)};
    double begin = NAN, end = NAN;
    if (memory[0] && memory[1]) {
        double *in = memory[0] + LINE - 1, *out = memory[1] + LINE - 1;     /* the first cell of a row begins a line */
        lbm_vortex_cells(v, &box, 0, in, NULL);
        for (int step = 1; step <= LBM_VORTEX_END; step++) {
            for (int axis = 0; axis < 3; axis++)
                lbm_wrap(&box, in, axis);
            loop(&box, 0, box.rows * box.planes, out, in);
            double *const other = in;
            in = out;
            out = other;
            if (step == LBM_VORTEX_BEGIN)
                begin = lbm_vortex_cells(v, &box, 0, NULL, in);
        }
        end = lbm_vortex_cells(v, &box, 0, NULL, in);
    }
    free(memory[0]);
    free(memory[1]);
    return lbm_viscosity(v, begin, end);
}
