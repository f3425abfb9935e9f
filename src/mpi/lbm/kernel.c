/* The slabs as the runtime sees them: a pass is a time step of all ranks together. */
#include <math.h>
#include <stdlib.h>

#include "inject.h"
#include "runtime.h"
#include "slabs.h"

static const pl_variant variants[] = {
    {"fused", PL_LOOP(lbm_fused), .about = "populations are collected and collide in one loop, as the compiler makes it"},
    {"split", PL_LOOP(lbm_split), .about = "fused, a loop that moves all populations and one in which they collide"},
    PL_WIDEST("nt", lbm_nt, .nontemporal = true, .about = "fused, by 64 cells through a buffer, non-temporal stores")
    {0},
};

enum { PLANES, EACH, WORKING, LATENCY };

static const pl_parameter parameters[] = {
    [PLANES] = {"planes", 0, 1, "planes of cells that are cut into slabs; 0: as many as rows", .of_data = true},
    [EACH] = {"planes-each", 0, 1, "planes of each working process, instead of --planes; 0: none", .of_data = true},
    [WORKING] = PL_WORKING_PARAMETER,
    [LATENCY] = PL_INJECT_PARAMETER,
    {0},
};

/* --- data ------------------------------------------------------------------------------------------------------ */

typedef struct {
    pl_buffers *memory;         /* NULL: this process waits */
    bool works;
    app app;
    slabs slabs;
    app_result step;            /* of the verified one */
    double viscosity;           /* of the variant that was verified last */
} lbm_data;

enum { MOST = 4096 };           /* cells along an edge: counts of MPI are int */

static lbm_data *data_of(const pl_case *c) { return c->data; }

static int working_of(const pl_case *c) { return pl_working(c->parameters[WORKING]); }

static size_t planes_of(const pl_case *c)
{
    if (c->parameters[EACH])
        return (size_t)c->parameters[EACH] * (size_t)working_of(c);
    return c->parameters[PLANES] ? (size_t)c->parameters[PLANES] : c->n;
}

static void check(const pl_case *c)
{
    if (c->n > MOST)
        pl_fail("--size %zu: these are the cells along an edge of the box: give at most %d", c->n, MOST);
    pl_check_working(c->parameters[WORKING]);
    const char *const why = slabs_refusal(working_of(c), planes_of(c));
    if (why)
        pl_fail("lbm on %d processes: %s", working_of(c), why);
    pl_inject_check(c->parameters[LATENCY]);
}

static size_t footprint(const pl_case *c)
{
    const app a = {.rank = pl_processes.rank, .ranks = working_of(c)};
    return pl_works(c->parameters[WORKING]) ? slabs_doubles(&a, c->n, planes_of(c)) * sizeof(double) : 0;
}

static void *create(const pl_case *c)
{
    const size_t bytes = footprint(c);
    lbm_data *const d = pl_allocate(sizeof *d, "the slab");
    d->works = app_open_first(&d->app, MPI_COMM_WORLD, working_of(c));
    if (!d->works)
        return d;
    d->memory = pl_buffers_create(c, 1, &bytes, (size_t[]){PL_LINE - sizeof(double)});
    slabs_create(&d->slabs, &d->app, c->n, planes_of(c), d->memory->at[0]);
    return d;
}

static void destroy(void *data)
{
    lbm_data *const d = data;
    if (d->works) {
        pl_buffers_destroy(d->memory);
        app_close(&d->app);
    }
    free(d);
}

static void touch(const pl_case *c, int thread, int threads)
{
    if (thread == 0 && data_of(c)->works)
        slabs_start(&data_of(c)->slabs);
}

/* --- the work -------------------------------------------------------------------------------------------------- */

static void plan(const pl_case *c, pl_plan *p) { pl_inject(c->parameters[LATENCY]); }

static void run(const pl_case *c, const pl_plan *p)
{
    lbm_data *const d = data_of(c);
    if (d->works)
        slabs_step(&d->slabs, (lbm_loop *)p->loop);
}

static double communication(const pl_case *c) { return app_communication_among(&data_of(c)->app, pl_processes.ranks); }

/* Of all ranks. */
static pl_work work(const pl_case *c)
{
    const double cells = (double)c->n * (double)c->n * (double)planes_of(c), loops = c->variant->loop == (pl_loop)lbm_split ? 2 : 1;
    const double lattice = LBM_POPULATIONS * sizeof(double) * cells;
    return (pl_work){.load_bytes = loops * lattice, .store_bytes = loops * lattice, .flops = LBM_FLOPS * cells,
                     .source = "model: 19 loads and 19 stores of 8 bytes per cell of all ranks by each loop; edges are not counted"};
}

/* --- verification ---------------------------------------------------------------------------------------------- */

static void poison(const pl_case *c)
{
    lbm_data *const d = data_of(c);
    if (!d->works)
        return;
    slabs_start(&d->slabs);
    app_reset(&d->app);
    d->app.proving = true;
}

/* The step that is verified took its edges from the neighbours, whose populations are known; then a vortex has to decay across all ranks. */
static double verify(const pl_case *c)
{
    lbm_data *const d = data_of(c);
    const slabs *const s = &d->slabs;
    if (!d->works)
        return 0;
    const app done = d->app;
    double worst = 0;
    for (size_t k = 1; k <= s->box.planes; k++)
        for (size_t j = 1; j <= s->box.rows; j++)
            worst = pl_worse(worst, lbm_error_of_row(&s->box, s->in + j * s->box.row + k * s->box.plane, j, s->first + k, s->planes));
    d->viscosity = slabs_viscosity(&d->app, (lbm_loop *)c->variant->loop);
    d->app = done;
    d->app.proving = false;
    d->step = app_result_of(&done, 0, worst, LBM_TOLERANCE);
    return fabs(d->viscosity - 1) <= LBM_VORTEX_TOLERANCE ? worst : INFINITY;
}

static double tolerance(const pl_case *c) { return LBM_TOLERANCE; }

/* Of a step, the mean of the ranks that work. */
static void facts(const pl_case *c, pl_fact *found)
{
    const lbm_data *const d = data_of(c);
    found[0] = (pl_fact){"planes-used", NULL, (double)planes_of(c)};
    found[1] = (pl_fact){"viscosity", NULL, d->viscosity};
    found[2] = (pl_fact){"messages", NULL, d->step.messages};
    found[3] = (pl_fact){"message_bytes", NULL, d->step.bytes};
    found[4] = (pl_fact){"flops_declared", NULL, d->step.flops * working_of(c)};
}

static const pl_kernel lbm_kernel = {
    .name = "lbm", .title = "a time step of a lattice Boltzmann fluid, D3Q19, in slabs of a periodic box of --size cells along an edge",
    .variants = variants, .parameters = parameters, .most_threads = 1, .usual_size = 128, .check = check, .footprint = footprint,
    .create = create, .touch = touch, .plan = plan, .run = run, .work = work, .verify = verify, .tolerance = tolerance, .poison = poison,
    .buffers = pl_first_buffers, .destroy = destroy, .facts = facts, .communication = communication,
};

int main(int argc, char **argv) { return pl_mpi_main(argc, argv, &lbm_kernel); }
