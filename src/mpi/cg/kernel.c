/* CG as the runtime sees it: a pass is an outer iteration, 25 steps of conjugate gradients, of all ranks together. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cg.h"
#include "inject.h"
#include "runtime.h"

static const pl_variant variants[] = {
    {"halving", .layout = CG_HALVING, .loop = (pl_loop)cg_iterate,
     .about = "vectors cut for all ranks, row sums by recursive halving: the least traffic, as the source"},
    {"doubling", .layout = CG_DOUBLING, .loop = (pl_loop)cg_iterate,
     .about = "vectors cut by columns of the grid, row sums by recursive doubling: the fewest messages"},
    {0},
};

enum { CLASS, WORKING, LATENCY };

static const char *const classes[] = {"S", "W", "A", NULL};     /* in the order of cg_sizes */

static const pl_parameter parameters[] = {
    [CLASS] = {"class", 2, 1, "size of the NAS benchmark: S 1400 rows, W 7000, A 14000", .words = classes, .of_data = true},
    [WORKING] = PL_WORKING_PARAMETER,
    [LATENCY] = PL_INJECT_PARAMETER,
    {0},
};

typedef struct {
    app app;
    cg_solver *solver;          /* NULL: this process waits */
    app_result pass;            /* of the verified one */
} cg_data;

static cg_data *data_of(const pl_case *c) { return c->data; }
static const cg_size *size_of(const pl_case *c) { return &cg_sizes[c->parameters[CLASS]]; }

static int working_of(const pl_case *c) { return pl_working(c->parameters[WORKING]); }

static void check(const pl_case *c)
{
    pl_check_working(c->parameters[WORKING]);
    const char *why = cg_refusal(working_of(c), size_of(c));
    if (why)
        pl_fail("cg on %d processes: %s", working_of(c), why);
    pl_inject_check(c->parameters[LATENCY]);
}

static size_t elements(const pl_case *c) { return size_of(c)->n; }

static size_t own_size(const char *const *text) { return cg_sizes[2].n; }

/* Elements of the matrix, before it is made, nearly: few products of two elements of a vector meet. */
static double products(const cg_size *size)
{
    return (double)size->n * (size->nonzeros + 1) * (size->nonzeros + 1);
}

/* Of this rank: its block, and the parts of vectors. */
static size_t footprint(const pl_case *c)
{
    const double ranks = working_of(c), n = (double)size_of(c)->n;
    return (size_t)(products(size_of(c)) * (sizeof(double) + sizeof(int)) / ranks + 10 * n * sizeof(double) / sqrt(ranks));
}

static void *create(const pl_case *c)
{
    cg_data *const d = pl_allocate(sizeof *d, "the solver");
    if (!app_open_first(&d->app, MPI_COMM_WORLD, working_of(c)))
        return d;
    d->solver = cg_create(&d->app, size_of(c), (cg_exchange)c->variant->layout);
    return d;
}

static void destroy(void *data)
{
    cg_data *const d = data;
    if (d->solver) {
        cg_destroy(d->solver);
        app_close(&d->app);
    }
    free(d);
}

static void touch(const pl_case *c, int thread, int threads)
{
    if (thread == 0 && data_of(c)->solver)
        cg_start(data_of(c)->solver);
}

static const void *where(const pl_case *c, size_t *bytes)
{
    const cg_data *const d = data_of(c);
    *bytes = d->solver ? d->solver->block.begin[d->solver->block.rows] * sizeof *d->solver->block.value : sizeof *d;
    return d->solver ? (const void *)d->solver->block.value : d;
}

/* --- the work -------------------------------------------------------------------------------------------------- */

static void plan(const pl_case *c, pl_plan *p) { pl_inject(c->parameters[LATENCY]); }

static void run(const pl_case *c, const pl_plan *p)
{
    if (data_of(c)->solver)
        cg_iterate(data_of(c)->solver);
}

static double communication(const pl_case *c) { return app_communication_among(&data_of(c)->app, pl_processes.ranks); }

/* Of all ranks; vectors once, as on one rank: a product reads the matrix, the diagonal and p and writes q, a step of
 * conjugate gradients reads 11 and writes 3 more. */
static pl_work work(const pl_case *c)
{
    const cg_size *const size = size_of(c);
    const double elements = data_of(c)->solver ? data_of(c)->solver->elements : products(size);
    const double n = (double)size->n, word = sizeof(double), matrix = elements * (sizeof(double) + sizeof(int));
    return (pl_work){.load_bytes = (CG_STEPS + 1) * (matrix + 2 * word * n) + CG_STEPS * 11 * word * n,
                     .store_bytes = (CG_STEPS + 1) * word * n + CG_STEPS * 3 * word * n,
                     .flops = cg_flops(size, elements),
                     .source = "model: matrix and vectors of all ranks are read once a step"};
}

/* --- verification ---------------------------------------------------------------------------------------------- */

static void poison(const pl_case *c)
{
    cg_data *const d = data_of(c);
    if (!d->solver)
        return;
    cg_start(d->solver);
    app_reset(&d->app);
    d->app.proving = true;
}

/* The pass that is verified was the first iteration; the benchmark's others follow here, and their outcome is known. */
static double verify(const pl_case *c)
{
    cg_data *const d = data_of(c);
    if (!d->solver)
        return 0;
    d->pass = app_result_of(&d->app, 0, d->solver->residual, 0);
    const app measured = d->app;
    double error = d->solver->products == CG_STEPS + 1 ? d->solver->residual : INFINITY;   /* fewer leave a residual as small */
    for (int i = 1; i < d->solver->size->outer; i++)
        cg_iterate(d->solver);
    d->app = measured;
    d->app.proving = false;
    error = fmax(error, d->solver->residual);
    const double zeta = fabs(d->solver->zeta - d->solver->size->zeta) / d->solver->size->zeta;
    return isnan(zeta) || isnan(error) ? NAN : fmax(error, zeta);
}

static double tolerance(const pl_case *c) { return cg_tolerance; }

/* Of a pass, the mean of the ranks; lengths are those of the parts of vectors, of all ranks. */
static void facts(const pl_case *c, pl_fact *found)
{
    static char grid[32];
    const cg_data *const d = data_of(c);
    const app_result *const r = &d->pass;
    snprintf(grid, sizeof grid, "%dx%d", d->solver->grid_rows, d->solver->grid_columns);
    found[0] = (pl_fact){"grid", grid, 0};
    found[1] = (pl_fact){"messages", NULL, r->messages};
    found[2] = (pl_fact){"messages_of_sums", NULL, r->words};
    found[3] = (pl_fact){"message_bytes", NULL, r->bytes};
    found[4] = (pl_fact){"message_shortest", NULL, r->shortest};
    found[5] = (pl_fact){"message_longest", NULL, r->longest};
    found[6] = (pl_fact){"flops_declared", NULL, r->flops * working_of(c)};
}

static const pl_kernel cg_kernel = {
    .name = "cg", .title = "an outer iteration of the NAS benchmark CG: 25 steps of conjugate gradients on a grid of processes",
    .variants = variants, .parameters = parameters, .most_threads = 1, .own_size = own_size, .elements = elements, .check = check,
    .footprint = footprint, .create = create, .touch = touch, .plan = plan, .run = run, .work = work, .verify = verify,
    .tolerance = tolerance, .poison = poison, .where = where, .destroy = destroy, .facts = facts,
    .communication = communication,
};

int main(int argc, char **argv) { return pl_mpi_main(argc, argv, &cg_kernel); }
