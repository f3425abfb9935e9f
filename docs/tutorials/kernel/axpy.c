/* z(:) = 3 x(:) + y(:): a kernel of the site's own.  The loops, the data, the model of its work, and its verification; options,
 * threads, clock, limit streams and records are the harness's. */
#include <math.h>

#include "plumbline.h"

enum { X, Y, Z, ARRAYS };

typedef void axpy_loop(size_t n, const double *restrict x, const double *restrict y, double *restrict z);

static void axpy_plain(size_t n, const double *restrict x, const double *restrict y, double *restrict z)
{
    for (size_t i = 0; i < n; i++)
        z[i] = 3 * x[i] + y[i];
}

static void axpy_unrolled(size_t n, const double *restrict x, const double *restrict y, double *restrict z)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t k = i; k < i + 4; k++)
            z[k] = 3 * x[k] + y[k];
    for (; i < n; i++)
        z[i] = 3 * x[i] + y[i];
}

static const pl_variant variants[] = {
    {"plain", .loop = (pl_loop)axpy_plain, .about = "as the compiler makes it"},
    {"unrolled", .loop = (pl_loop)axpy_unrolled, .about = "four at a time"},
    {0},
};

static size_t footprint(const pl_case *c) { return pl_arrays_footprint(c, ARRAYS); }

static void *create(const pl_case *c) { return pl_arrays_create(c, ARRAYS); }

/* Small whole numbers without a period: the result is exact, so the error allowed is zero. */
static double value_x(size_t i) { return (double)(int)(pl_mix(i) & 1023); }
static double value_y(size_t i) { return (double)(int)(pl_mix(i) >> 10 & 1023); }

static void touch(const pl_case *c, int thread, int threads)
{
    const pl_arrays *a = c->data;
    const pl_range part = pl_part(c->n, thread, threads);
    for (size_t i = part.begin; i < part.end; i++) {
        a->array[X][i] = value_x(i);
        a->array[Y][i] = value_y(i);
        a->array[Z][i] = 0;
    }
}

static void plan(const pl_case *c, pl_plan *p)
{
    for (int k = X; k < ARRAYS; k++)
        p->at[k] = ((const pl_arrays *)c->data)->array[k] + p->part.begin;
}

static void run(const pl_case *c, const pl_plan *p)
{
    ((axpy_loop *)p->loop)(p->part.end - p->part.begin, p->at[X], p->at[Y], p->at[Z]);
}

static pl_work work(const pl_case *c)
{
    const double n = (double)c->n;
    return (pl_work){.load_bytes = 16 * n, .store_bytes = 8 * n, .flops = 2 * n, .source = "model: 2 loads and 1 store of 8 bytes"};
}

static void poison(const pl_case *c) { memset(((pl_arrays *)c->data)->array[Z], 0xFF, c->n * sizeof(double)); }     /* not a number */

static double verify(const pl_case *c)
{
    const pl_arrays *a = c->data;
    double worst = 0;
    for (size_t i = 0; i < c->n; i++)
        worst = pl_worse(worst, fabs(a->array[Z][i] - (3 * value_x(i) + value_y(i))));
    return worst;
}

static const pl_kernel axpy = {
    .name = "axpy", .title = "z(:) = 3 x(:) + y(:)", .variants = variants, .arrays = true,
    .footprint = footprint, .create = create, .touch = touch, .plan = plan, .run = run, .work = work, .verify = verify,
    .poison = poison, .destroy = pl_arrays_destroy,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &axpy); }
