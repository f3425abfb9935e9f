/* SP as the runtime sees it: a pass is a time step of all ranks together. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "inject.h"
#include "runtime.h"
#include "sp.h"

enum { TRANSPOSED, PIPELINED };     /* layout: they keep their lines in different ways */

static const pl_variant variants[] = {
    {"transposed", .layout = TRANSPOSED, .loop = (pl_loop)sp_step,
     .about = "parts of lines exchanged for whole lines, and back: as the source"},
    {"pipelined", .layout = PIPELINED, .loop = (pl_loop)sp_step,
     .about = "lines eliminated from rank to rank, and substituted back"},
    {0},
};

enum { ROWS, RANKS_X, RANKS_Y, RANKS_Z, WORKING, LATENCY };

static const pl_parameter parameters[] = {
    [ROWS] = {"rows", SP_COMPONENTS, 1, "row segments in a message"},
    [RANKS_X] = {"ranks-x", 0, 1, "ranks that the x-axis is cut for; 0: chosen, at most as along y", .of_data = true},
    [RANKS_Y] = {"ranks-y", 0, 1, "ranks that the y-axis is cut for; 0: chosen", .of_data = true},
    [RANKS_Z] = {"ranks-z", 0, 1, "ranks that the z-axis is cut for; 0: as few as can be", .of_data = true},
    [WORKING] = PL_WORKING_PARAMETER,
    [LATENCY] = PL_INJECT_PARAMETER,
    {0},
};

/* --- data ------------------------------------------------------------------------------------------------------ */

enum { MOST = 512, CLASS_A = 64 };      /* points along an edge: counts of MPI are int */

typedef struct {
    pl_buffers *memory;
    app app;
    sp *solver;                 /* NULL: this process waits */
    app_result step;            /* of the verified one */
} sp_data;

static sp_data *data_of(const pl_case *c) { return c->data; }

static int working_of(const pl_case *c) { return pl_working(c->parameters[WORKING]); }

static sp_options options_of(const pl_case *c)
{
    sp_options o = {.n = (int)c->n, .ranks = {(int)c->parameters[RANKS_X], (int)c->parameters[RANKS_Y], (int)c->parameters[RANKS_Z]},
                    .pipelined = c->variant->layout == PIPELINED, .rows = c->parameters[ROWS]};
    char why[SP_WHY];
    if (c->n > MOST)
        pl_fail("--size %zu: these are the points along an edge of the cube: give at most %d", c->n, MOST);
    if (!sp_choose(&o, working_of(c), why))
        pl_fail("sp: %s", why);
    return o;
}

static void check(const pl_case *c)
{
    pl_check_working(c->parameters[WORKING]);
    options_of(c);
    pl_inject_check(c->parameters[LATENCY]);
}

static size_t footprint(const pl_case *c)
{
    const sp_options o = options_of(c);
    return pl_works(c->parameters[WORKING]) ? sp_bytes(&o, pl_processes.rank) : 0;
}

static void *create(const pl_case *c)
{
    const sp_options o = options_of(c);
    const size_t bytes = footprint(c);
    sp_data *const d = pl_allocate(sizeof *d, "the solver");
    if (!app_open_first(&d->app, MPI_COMM_WORLD, working_of(c)))
        return d;
    d->memory = pl_buffers_create(c, 1, &bytes, NULL);
    d->solver = sp_create(&d->app, &o, d->memory->at[0]);
    return d;
}

static void destroy(void *data)
{
    sp_data *const d = data;
    if (d->solver) {
        sp_destroy(d->solver);
        pl_buffers_destroy(d->memory);
        app_close(&d->app);
    }
    free(d);
}

static void touch(const pl_case *c, int thread, int threads)
{
    if (thread == 0 && data_of(c)->solver)
        sp_start(data_of(c)->solver);
}

/* --- the work -------------------------------------------------------------------------------------------------- */

static void plan(const pl_case *c, pl_plan *p)
{
    if (data_of(c)->solver)
        data_of(c)->solver->chosen.rows = c->parameters[ROWS];
    pl_inject(c->parameters[LATENCY]);
}

static void run(const pl_case *c, const pl_plan *p)
{
    if (data_of(c)->solver)
        sp_step(data_of(c)->solver);
}

static double communication(const pl_case *c) { return app_communication_among(&data_of(c)->app, pl_processes.ranks); }

/* Right-hand side: five values, three speeds and ten of the forcing in, five out.  A sweep: five values and a speed in, five
 * out.  At last ten in and five out.  Of all ranks. */
static pl_work work(const pl_case *c)
{
    const double points = (double)c->n * (double)c->n * (double)c->n, word = sizeof(double);
    return (pl_work){.load_bytes = (18 + 3 * 6 + 10) * word * points, .store_bytes = (5 + 3 * 5 + 5) * word * points,
                     .flops = SP_FLOPS * points,
                     .source = "model: every array of all ranks is read and written once a sweep"};
}

/* --- verification ---------------------------------------------------------------------------------------------- */

static void poison(const pl_case *c)
{
    sp_data *const d = data_of(c);
    if (!d->solver)
        return;
    sp_start(d->solver);
    app_reset(&d->app);
    d->app.proving = true;
    for (int m = 0; m < SP_COMPONENTS; m++)
        for (ptrdiff_t i = 0; i < d->solver->points; i++)
            d->solver->du[m][i] = NAN;
}

/* The residual of the equations of this step, unless its solution is farther from the exact one than differences explain. */
static double verify(const pl_case *c)
{
    sp_data *const d = data_of(c);
    if (!d->solver)
        return 0;
    app done = d->app;
    done.shortest = d->solver->shortest;
    done.longest = d->solver->longest;
    const bool near = sp_error(d->solver) <= sp_error_bound(d->solver);
    const double residual = sp_residual(d->solver);     /* all ranks take part */
    d->app.proving = false;
    d->step = app_result_of(&done, 0, residual, sp_residual_bound(d->solver));
    return near ? residual : INFINITY;
}

/* Of a process that waits: no error of the others is too large for it. */
static double tolerance(const pl_case *c) { return data_of(c)->solver ? sp_residual_bound(data_of(c)->solver) : INFINITY; }

/* Of a step, the mean of the ranks; lengths are those of the messages of row segments, of all ranks. */
static void facts(const pl_case *c, pl_fact *found)
{
    static char grid[48];
    const app_result *const r = &data_of(c)->step;
    const int *const ranks = data_of(c)->solver->chosen.ranks;
    snprintf(grid, sizeof grid, "%dx%dx%d", ranks[0], ranks[1], ranks[2]);
    found[0] = (pl_fact){"grid", grid, 0};
    found[1] = (pl_fact){"messages", NULL, r->messages};
    found[2] = (pl_fact){"message_bytes", NULL, r->bytes};
    found[3] = (pl_fact){"message_shortest", NULL, r->shortest};
    found[4] = (pl_fact){"message_longest", NULL, r->longest};
    found[5] = (pl_fact){"flops_declared", NULL, r->flops * working_of(c)};
}

static const pl_kernel sp_kernel = {
    .name = "sp", .title = "a time step of an ADI solver, --size is the number of points along an edge of the cube",
    .variants = variants, .parameters = parameters, .most_threads = 1, .usual_size = CLASS_A, .check = check, .footprint = footprint,
    .create = create, .touch = touch, .plan = plan, .run = run, .work = work, .verify = verify, .tolerance = tolerance, .poison = poison,
    .buffers = pl_first_buffers, .destroy = destroy, .facts = facts, .communication = communication,
};

int main(int argc, char **argv) { return pl_mpi_main(argc, argv, &sp_kernel); }
