/* The vector triad by processes that share nothing, for saturation: a memory's bandwidth over the number of processes (hager2007,
 * section 3.1).  The loops are those of src/kernels/triad. */
#include <math.h>

#include "kernel.h"
#include "runtime.h"

static const pl_variant variants[] = {
    {"plain", PL_LOOP(triad_plain), .about = "as the compiler makes it"},
    PL_WIDEST("nt", triad_nt, .nontemporal = true, .about = "plain, non-temporal stores")
    {0},
};

enum { WORKING };

/* The arrays of a process are the same whatever the others do. */
static const pl_parameter parameters[] = {
    [WORKING] = {"working", 0, 1, "processes that work, the first of them; the others wait; 0: all"},
    {0},
};

enum { A, B, C, D };

static void check(const pl_case *c) { pl_check_working(c->parameters[WORKING]); }

static size_t footprint(const pl_case *c) { return pl_arrays_footprint(c, 4); }

static void *create(const pl_case *c) { return pl_arrays_create(c, 4); }

/* Whole numbers: results are exact. */
static double value(size_t i, int array) { return (double)((int)(pl_mix(i) >> 10 * array & 1023) - 511); }

static void touch(const pl_case *c, int thread, int threads)
{
    const pl_arrays *const x = c->data;
    for (size_t i = 0; i < c->n; i++) {
        x->array[A][i] = 0;
        for (int k = B; k <= D; k++)
            x->array[k][i] = value(i, k - B);
    }
}

static void run(const pl_case *c, const pl_plan *p)
{
    double *const *const x = ((const pl_arrays *)c->data)->array;
    static const long none[PL_MAX_PARAMETERS];
    if (pl_works(c->parameters[WORKING]))
        ((triad_loop *)p->loop)(c->n, x[A], x[B], x[C], x[D], none);
}

/* Of all processes that work. */
static pl_work work(const pl_case *c)
{
    const double n = (double)c->n * pl_working(c->parameters[WORKING]);
    return (pl_work){.load_bytes = 24 * n, .store_bytes = 8 * n, .flops = 2 * n, .source = "model: 3 loads and 1 store of 8 bytes per iteration"};
}

static void poison(const pl_case *c)
{
    for (size_t i = 0; i < c->n; i++)
        ((const pl_arrays *)c->data)->array[A][i] = NAN;
}

/* What this process has computed, and nothing where it waited. */
static double verify(const pl_case *c)
{
    double *const *const x = ((const pl_arrays *)c->data)->array;
    const bool works = pl_works(c->parameters[WORKING]);
    double worst = 0;
    for (size_t i = 0; i < c->n; i++) {
        const double expected = value(i, 0) + value(i, 1) * value(i, 2);
        worst = pl_worse(worst, works ? fabs(x[A][i] - expected) : isnan(x[A][i]) ? 0 : INFINITY);
    }
    return worst;
}

static const pl_kernel triad = {
    .name = "triad", .title = "A = B + C * D by processes that share nothing, --size is the number of elements of each", .variants = variants,
    .parameters = parameters, .arrays = true, .most_threads = 1, .check = check, .footprint = footprint, .create = create, .touch = touch,
    .run = run, .work = work, .verify = verify, .poison = poison, .destroy = pl_arrays_destroy,
    .private_lines = true,
};

int main(int argc, char **argv) { return pl_mpi_main(argc, argv, &triad); }
