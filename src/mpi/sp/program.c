/* SP for the simulation: the sizes of the NAS parallel benchmarks, S for tests and A for table 13. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sp.h"

static const char *const sizes[] = {"S", "A", NULL};
static const int points[] = {12, 64};

static sp_options options_of(const app *a, const char *size)
{
    sp_options o = {.rows = SP_COMPONENTS};
    char why[SP_WHY];
    for (int i = 0; sizes[i]; i++)
        if (!strcmp(sizes[i], size))
            o.n = points[i];
    if (!o.n)
        app_fail(a, "sp has no size '%s': give S (12^3 points) or A (64^3)", size);
    if (!sp_choose(&o, a->ranks, why))
        app_fail(a, "sp: %s", why);
    return o;
}

static void refuse(const app *a, const char *size) { options_of(a, size); }

/* The equations' residual after the first step, which is done again if there were more; infinite where
 * the error at the end is above its own bound. */
static double proof(sp *s, double error)
{
    if (!(error <= sp_error_bound(s)))
        return HUGE_VAL;
    if (s->steps != 1) {
        sp_start(s);
        sp_step(s);
    }
    return sp_residual(s);
}

static app_result run(app *a, const char *size, long iterations)
{
    const sp_options o = options_of(a, size);
    void *const memory = app_memory(aligned_alloc(64, sp_bytes(&o, a->rank)));
    sp *const s = sp_create(a, &o, memory);
    sp_start(s);
    MPI_Barrier(a->world);
    app_reset(a);
    const double began = app_seconds();
    for (long i = 0; i < iterations; i++)
        sp_step(s);
    const double seconds = app_seconds() - began;
    app done = *a;              /* what the proof sends is not the application's */
    done.shortest = s->shortest;    /* of messages of row segments, as in table 13; edges are among the bytes */
    done.longest = s->longest;
    double error = sp_error(s);
    MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, a->world);
    app_result r = app_result_of(&done, seconds, proof(s, error), sp_residual_bound(s));
    r.value = error;
    sp_destroy(s);
    free(memory);
    return r;
}

const app_program sp_program = {.name = "sp", .sizes = sizes, .refuse = refuse, .run = run};
