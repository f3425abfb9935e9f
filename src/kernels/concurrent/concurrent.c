/* Concurrent read streams as the runtime sees them: variants, data, model, verification. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel.h"

#define LOOP(function) .loop = (pl_loop)function

static const pl_variant variants[] = {
    {"plain", LOOP(concurrent_plain), .about = "as the compiler makes it"},
    {"prefetch", LOOP(concurrent_prefetch), .about = "plain, software prefetch --distance ahead"},
    {0},
};

static const pl_tuning tuning[] = {
    [CONCURRENT_STREAMS] = {"streams", 1, 1, "streams that each thread reads at once", .most = 4096},
    [CONCURRENT_DISTANCE] = {"distance", 128, 8, "prefetch distance in elements of a stream"},
    {0},
};

enum { ARRAY, SUMS, BUFFERS, SUM_STRIDE = PL_LINE / sizeof(double) };

static double *array(const pl_case *c, int buffer)
{
    const pl_buffers *set = c->data;
    return set->at[buffer];
}

static size_t footprint(const pl_case *c) { return c->n * sizeof(double); }

/* Cases that differ in their number of threads may share the data: sums for as many threads as there can be, a line
 * apart. */
static size_t sums_bytes(void) { return (size_t)sysconf(_SC_NPROCESSORS_CONF) * PL_LINE; }

static void *create(const pl_case *c)
{
    const size_t bytes[BUFFERS] = {footprint(c), sums_bytes()};
    return pl_buffers_create(c, BUFFERS, bytes, NULL);
}

/* Small whole numbers: their sum is exact in any order. */
static double value(size_t i) { return (double)((int)(i * 7 & 15) + 1); }

static void touch(const pl_case *c, int thread, int threads)
{
    const pl_range part = pl_part(c->n, thread, threads);
    for (size_t i = part.begin; i < part.end; i++)
        array(c, ARRAY)[i] = value(i);
}

static void run(const pl_case *c, int thread, long passes)
{
    concurrent_loop *const loop = (concurrent_loop *)c->variant->loop;
    const pl_range part = pl_part(c->n, thread, c->threads);
    double sum = 0;
    for (long pass = 0; pass < passes; pass++)
        sum = loop(part.end - part.begin, array(c, ARRAY) + part.begin, c->tuning);
    array(c, SUMS)[thread * SUM_STRIDE] = sum;
}

static pl_work work(const pl_case *c)
{
    const double n = (double)c->n;
    return (pl_work){.load_bytes = 8 * n, .flops = n,
                     .source = "model: 1 load of 8 bytes per element (anderson1997, section 3.2)"};
}

static void poison(const pl_case *c)
{
    memset(array(c, SUMS), 0xFF, sums_bytes());     /* not a number */
    pl_buffers_set_guards(c->data);
}

/* The sum of each thread's part, computed anew from the index. */
static double verify(const pl_case *c)
{
    double worst = pl_buffers_guards_intact(c->data) ? 0 : INFINITY;
    for (int thread = 0; thread < c->threads; thread++) {
        const pl_range part = pl_part(c->n, thread, c->threads);
        double total = 0;
        for (size_t i = part.begin; i < part.end; i++)
            total += value(i);
        const double error = fabs(array(c, SUMS)[thread * SUM_STRIDE] - total);
        worst = !(error <= worst) ? error : worst;  /* not a number counts */
    }
    return worst;
}

static const void *where(const pl_case *c, size_t *bytes)
{
    *bytes = footprint(c);
    return array(c, ARRAY);
}

static const pl_kernel concurrent = {
    .name = "concurrent", .title = "Sum of an array, read as several streams at once", .variants = variants,
    .tuning = tuning, .footprint = footprint, .create = create, .touch = touch, .run = run, .work = work,
    .verify = verify, .poison = poison, .where = where, .destroy = pl_buffers_destroy,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &concurrent); }
