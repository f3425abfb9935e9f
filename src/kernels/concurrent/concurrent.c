/* Concurrent read streams as the runtime sees them: variants, data, model, verification. */
#include <math.h>
#include <stdlib.h>

#include "kernel.h"

static const pl_variant variants[] = {
    {"plain", PL_LOOP(concurrent_plain), .about = "as the compiler makes it"},
    {"prefetch", PL_LOOP(concurrent_prefetch), .about = "plain, software prefetch --distance ahead"},
    {0},
};

static const pl_parameter parameters[] = {
    [CONCURRENT_STREAMS] = {"streams", 1, 1, "streams that each thread reads at once", .most = 4096},
    [CONCURRENT_DISTANCE] = {"distance", 128, 8, "prefetch distance in elements of a stream"},
    {0},
};

typedef struct {
    pl_buffers *array;
    pl_result *sums;        /* of each thread's last pass */
} concurrent_data;

static double *array(const pl_case *c)
{
    const concurrent_data *d = c->data;
    return d->array->at[0];
}

static size_t footprint(const pl_case *c) { return c->n * sizeof(double); }

static void *create(const pl_case *c)
{
    const size_t bytes = footprint(c);
    concurrent_data *d = pl_allocate(sizeof *d, "the streams");
    d->array = pl_buffers_create(c, 1, &bytes, NULL);
    d->sums = pl_results_create();
    return d;
}

static void destroy(void *data)
{
    concurrent_data *d = data;
    free(d->sums);
    pl_first_buffers_destroy(d);
}

static void touch(const pl_case *c, int thread, int threads)
{
    const pl_range part = pl_part(c->n, thread, threads);
    for (size_t i = part.begin; i < part.end; i++)
        array(c)[i] = pl_value(i);
}

static void run(const pl_case *c, const pl_plan *p)
{
    const concurrent_data *d = c->data;
    d->sums[p->thread].value = ((concurrent_loop *)p->loop)(p->part.end - p->part.begin, array(c) + p->part.begin, c->parameters);
}

static pl_work work(const pl_case *c)
{
    const double n = (double)c->n;
    return (pl_work){.load_bytes = 8 * n, .flops = n,
                     .source = "model: 1 load of 8 bytes per element (anderson1997, section 3.2)"};
}

static void poison(const pl_case *c) { pl_results_poison(((const concurrent_data *)c->data)->sums); }

/* The sum of a thread's part, computed anew from the index. */
static double verify_part(const pl_case *c, int thread)
{
    const pl_range part = pl_part(c->n, thread, c->threads);
    double total = 0;
    for (size_t i = part.begin; i < part.end; i++)
        total += pl_value(i);
    return fabs(((const concurrent_data *)c->data)->sums[thread].value - total);
}

static const pl_kernel concurrent = {
    .name = "concurrent", .title = "Sum of an array, read as several streams at once", .variants = variants,
    .parameters = parameters, .footprint = footprint, .create = create, .touch = touch, .run = run, .work = work,
    .verify_part = verify_part, .poison = poison, .buffers = pl_first_buffers, .destroy = destroy, .private_lines = true,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &concurrent); }
