/* CG as the simulated program runs it. */
#include <math.h>
#include <stddef.h>

#include "cg.h"

static const char *const sizes[] = {"S", "W", "A", NULL};

static void refuse(const app *a, const char *size)
{
    const char *why = cg_refusal(a->ranks, cg_size_of(size));
    if (why)
        app_fail(a, "cg on %d processes: %s", a->ranks, why);
}

static app_result run(app *a, const char *size, long iterations, cg_exchange exchange)
{
    cg_solver *s = cg_create(a, cg_size_of(size), exchange);
    cg_start(s);
    MPI_Barrier(a->world);
    app_reset(a);
    const double began = app_seconds();
    for (long i = 0; i < iterations; i++)
        cg_iterate(s);
    const double seconds = app_seconds() - began;
    double error = s->residual;
    if (iterations == s->size->outer)       /* the published value is that after so many */
        error = fmax(error, fabs(s->zeta - s->size->zeta) / s->size->zeta);
    app_result result = app_result_of(a, seconds, error, cg_tolerance);
    result.value = s->zeta;
    cg_destroy(s);
    return result;
}

static app_result run_halving(app *a, const char *size, long iterations) { return run(a, size, iterations, CG_HALVING); }
static app_result run_doubling(app *a, const char *size, long iterations) { return run(a, size, iterations, CG_DOUBLING); }

const app_program cg_program = {"cg", sizes, refuse, run_halving};
const app_program cg_doubling_program = {"cg-doubling", sizes, refuse, run_doubling};
