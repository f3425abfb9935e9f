/* The problem, as functions of the place: what the solver is given, and what its solution is proved against.
 *
 * Component m of the solution is a product of sines, that is zero on the walls and odd about them, and swings in time:
 * S_m(x, y, z) (a_m cos wt + b_m sin wt).  The forcing is what the equations leave of it. */
#include <math.h>

#include "sp.h"

static const double pi = 3.14159265358979323846;
const double sp_sound = 1, sp_viscosity = 0.05, sp_fourth = 0.02, sp_frequency = 2;

static const struct {
    int waves[SP_AXES];
    double cosine, sine;
} mode[SP_COMPONENTS] = {
    {{1, 1, 1}, 1.0, 0.0}, {{2, 1, 1}, 0.8, 0.6}, {{1, 2, 1}, 0.0, 1.0}, {{1, 1, 2}, -0.6, 0.8}, {{2, 2, 1}, -0.8, -0.6},
};

static double shape(int m, const double *x)
{
    double product = 1;
    for (int a = 0; a < SP_AXES; a++)
        product *= sin(pi * mode[m].waves[a] * x[a]);
    return product;
}

/* Derivative of the shape along an axis. */
static double slope(int m, int axis, const double *x)
{
    double product = 1;
    for (int a = 0; a < SP_AXES; a++) {
        const double wave = pi * mode[m].waves[a];
        product *= a == axis ? wave * cos(wave * x[a]) : sin(wave * x[a]);
    }
    return product;
}

/* - lap S / S */
static double curvature(int m)
{
    double sum = 0;
    for (int a = 0; a < SP_AXES; a++)
        sum += pi * pi * mode[m].waves[a] * mode[m].waves[a];
    return sum;
}

double sp_exact(int m, const double x[SP_AXES], double t)
{
    return shape(m, x) * (mode[m].cosine * cos(sp_frequency * t) + mode[m].sine * sin(sp_frequency * t));
}

double sp_flow(int axis, const double x[SP_AXES])
{
    switch (axis) {
    case 0: return 0.5 + 0.3 * sin(pi * x[0]) * cos(pi * x[1]);
    case 1: return -0.4 + 0.2 * cos(pi * (x[0] + x[2]));
    default: return 0.3 * sin(2 * pi * x[1]) + 0.2 * cos(pi * x[2]);
    }
}

static void add(int of, double factor, double *cosine, double *sine)
{
    *cosine += factor * mode[of].cosine;
    *sine += factor * mode[of].sine;
}

void sp_force(int m, const double x[SP_AXES], double *cosine, double *sine)
{
    const double wave = sp_frequency * shape(m, x);
    *cosine = wave * mode[m].sine;
    *sine = -wave * mode[m].cosine;
    for (int a = 0; a < SP_AXES; a++) {
        add(m, sp_flow(a, x) * slope(m, a, x), cosine, sine);
        if (m == 0)
            add(1 + a, sp_sound * slope(1 + a, a, x), cosine, sine);
        if (m == 1 + a)
            add(0, sp_sound * slope(0, a, x), cosine, sine);
    }
    add(m, sp_viscosity * curvature(m) * shape(m, x), cosine, sine);
}

void sp_position(const sp *s, int x, int y, int z, double at[SP_AXES])
{
    const int here[SP_AXES] = {x, y, z};
    for (int a = 0; a < SP_AXES; a++)
        at[a] = (s->first[a] + here[a] + 1) * s->k.h;      /* a wall lies one point before the first, one after the last */
}
