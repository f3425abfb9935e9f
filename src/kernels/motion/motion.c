/* Data motion as the runtime sees it: its table of variants, its data, its model, its verification. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* Variants of one layout share their data: fill, load and update have one array, copy has two. */
enum { ONE_ARRAY, TWO_ARRAYS };

static const pl_variant variants[] = {
    {"fill", PL_LOOP(motion_fill), .about = "Y(:) = constant; as the compiler makes it"},
    PL_WIDEST("fill_nt", motion_fill_nt, .nontemporal = true, .about = "non-temporal stores")
    {"fill_prefetch", PL_LOOP(motion_fill_prefetch), .about = "software prefetch --distance ahead"},
    {"load", PL_LOOP(motion_load), .about = "sum of X(:), in partial sums; as the compiler makes it"},
    {"load_prefetch", PL_LOOP(motion_load_prefetch), .about = "software prefetch --distance ahead"},
    {"update", PL_LOOP(motion_update), .about = "Y(:) = -Y(:); as the compiler makes it"},
    {"update_prefetch", PL_LOOP(motion_update_prefetch), .about = "software prefetch --distance ahead"},
    {"copy", .layout = TWO_ARRAYS, PL_LOOP(motion_copy), .about = "Y(:) = X(:); as the compiler makes it"},
    PL_WIDEST("copy_nt", motion_copy_nt, .layout = TWO_ARRAYS, .nontemporal = true, .about = "non-temporal stores")
    {"copy_prefetch", .layout = TWO_ARRAYS, PL_LOOP(motion_copy_prefetch), .about = "software prefetch --distance ahead"},
    {0},
};

static const pl_parameter parameters[] = {
    [MOTION_DISTANCE] = {"distance", 512, 8, "prefetch distance in elements"},
    {0},
};

/* Y is the first array, X the last: the same one where there is one. */
typedef struct {
    pl_arrays *arrays;
    pl_result *sums;        /* of each thread's last pass */
} motion_data;

static int arrays_of(const pl_case *c) { return c->variant->layout == TWO_ARRAYS ? 2 : 1; }
static double *y_of(const motion_data *d) { return d->arrays->array[0]; }
static double *x_of(const motion_data *d) { return d->arrays->array[d->arrays->count - 1]; }

/* The motion that a variant is of: f, l, u, c. */
static int motion_of(const pl_case *c) { return c->variant->name[0]; }

static size_t footprint(const pl_case *c) { return pl_arrays_footprint(c, arrays_of(c)); }

static void *create(const pl_case *c)
{
    motion_data *d = pl_allocate(sizeof *d, "the data motion");
    d->arrays = pl_arrays_create(c, arrays_of(c));
    d->sums = pl_results_create();
    return d;
}

static void destroy(void *data)
{
    motion_data *d = data;
    pl_arrays_destroy(d->arrays);
    free(d->sums);
    free(d);
}

static void touch(const pl_case *c, int thread, int threads)
{
    const motion_data *d = c->data;
    const pl_range part = pl_part(c->n, thread, threads);
    for (size_t i = part.begin; i < part.end; i++)
        y_of(d)[i] = x_of(d)[i] = pl_value(i);
}

enum { Y, X, SUM };

static void plan(const pl_case *c, pl_plan *p)
{
    const motion_data *d = c->data;
    p->at[Y] = y_of(d) + p->part.begin;
    p->at[X] = x_of(d) + p->part.begin;
    p->at[SUM] = &d->sums[p->thread].value;
}

static void run(const pl_case *c, const pl_plan *p)
{
    *p->at[SUM] = ((motion_loop *)p->loop)(p->part.end - p->part.begin, p->at[Y], p->at[X], c->parameters);
}

static pl_work work(const pl_case *c)
{
    const double vector = 8 * (double)c->n;
    switch (motion_of(c)) {
    case 'f':
        return (pl_work){.store_bytes = vector,
                         .source = "model: 1 store of 8 bytes per element (anderson1997, table 5)"};
    case 'l':
        return (pl_work){.load_bytes = vector, .flops = vector / 8,
                         .source = "model: 1 load of 8 bytes per element (anderson1997, table 3)"};
    case 'u':
        return (pl_work){.load_bytes = vector, .store_bytes = vector, .fetched_bytes = vector, .updated_bytes = vector,
                         .source = "model: 1 load and 1 store of the same 8 bytes per element: no write-allocate"};
    default:
        return (pl_work){.load_bytes = vector, .store_bytes = vector,
                         .source = "model: 1 load and 1 store of 8 bytes per element (anderson1997, tables 3 and 5)"};
    }
}

static void poison(const pl_case *c)
{
    const motion_data *d = c->data;
    if (motion_of(c) == 'f' || motion_of(c) == 'c')
        memset(y_of(d), 0xFF, c->n * sizeof(double));       /* not a number */
    pl_results_poison(d->sums);
    pl_arrays_set_guards(d->arrays);
}

static inline double expected(int of, double value) { return of == 'f' ? MOTION_CONSTANT : of == 'u' ? -value : value; }

static inline double error_at(const motion_data *d, int of, size_t i)
{
    return fabs(y_of(d)[i] - expected(of, pl_value(i))) + (of == 'c' ? fabs(x_of(d)[i] - pl_value(i)) : 0);
}

/* Whether anything is wrong, which compilers vectorise: as fast as a motion. */
static inline bool any_wrong(const double *y, const double *x, int of, pl_range part)
{
    int wrong = 0;
    for (size_t i = part.begin; i < part.end; i++) {
        const double value = pl_value(i);
        wrong |= (y[i] != expected(of, value)) | (of == 'c' && x[i] != value);
    }
    return wrong;
}

static double verify(const pl_case *c) { return pl_arrays_guards_intact(((const motion_data *)c->data)->arrays) ? 0 : INFINITY; }

/* All is computed anew from the index: a motion that spoils what it reads is found as well. */
static double verify_part(const pl_case *c, int thread)
{
    const motion_data *d = c->data;
    const int of = motion_of(c);
    const pl_range part = pl_part(c->n, thread, c->threads);
    const double *const y = y_of(d), *const x = x_of(d);
    const bool wrong = of == 'f'   ? any_wrong(y, x, 'f', part)
                       : of == 'u' ? any_wrong(y, x, 'u', part)
                       : of == 'c' ? any_wrong(y, x, 'c', part)
                                   : any_wrong(y, x, 'l', part);
    double worst = 0;
    for (size_t i = part.begin; wrong && i < part.end; i++)
        worst = pl_worse(worst, error_at(d, of, i));
    int64_t sum = 0;
    for (size_t i = part.begin; of == 'l' && i < part.end; i++)
        sum += (int64_t)pl_value(i);
    return of == 'l' ? pl_worse(worst, fabs(d->sums[thread].value - (double)sum)) : worst;
}

static const void *where(const pl_case *c, size_t *bytes)
{
    const motion_data *d = c->data;
    *bytes = (size_t)((char *)(x_of(d) + c->n) - (char *)y_of(d));
    return y_of(d);
}

static const pl_kernel motion = {
    .name = "motion", .title = "Data motion with unit stride: fill, load, update, copy", .variants = variants,
    .parameters = parameters, .footprint = footprint, .create = create, .touch = touch, .plan = plan, .run = run, .work = work,
    .verify = verify, .verify_part = verify_part, .refresh = true, .poison = poison, .where = where, .destroy = destroy,
    .private_lines = true,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &motion); }
