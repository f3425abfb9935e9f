/* Strided copy as the runtime sees it: its table of variants, its data, its model, its verification. */
#include <math.h>
#include <string.h>

#include "kernel.h"

static const pl_variant variants[] = {
    {"read", PL_LOOP(strided_read), .about = "Y(1:n) = X(1:n*k:k)"},
#if defined(__x86_64__)
    {"read_nt", .nontemporal = true, PL_LOOP(strided_read_nt), .about = "read, non-temporal stores to Y"},
#else
    {"read_nt", .about = "intrinsics are written for x86-64 only"},
#endif
    {"read_prefetch", PL_LOOP(strided_read_prefetch), .about = "read, software prefetch of X --distance ahead"},
    {"write", PL_LOOP(strided_write), .about = "X(1:n*k:k) = Y(1:n)"},
    {"write_prefetch", PL_LOOP(strided_write_prefetch), .about = "write, software prefetch of X --distance ahead"},
    {0},
};

static const pl_parameter parameters[] = {
    [STRIDED_STRIDE] = {"stride", 1, 1, "k: elements from one that is moved to the next"},
    [STRIDED_DISTANCE] = {"distance", 32, 1, "prefetch distance in elements that are moved", .most = 1 << 16},
    {0},
};

enum { X, Y, BUFFERS };

static double *array(const pl_case *c, int buffer)
{
    const pl_buffers *set = c->data;
    return set->at[buffer];
}

static bool writes(const pl_case *c) { return c->variant->name[0] == 'w'; }

/* Y is never longer than X.  A thread's part of Y begins where its part of X does. */
static size_t footprint(const pl_case *c) { return 2 * sizeof(double) * c->n; }

static void *create(const pl_case *c)
{
    const size_t bytes[BUFFERS] = {c->n * sizeof(double), c->n * sizeof(double)};
    return pl_buffers_create(c, BUFFERS, bytes, NULL);
}

/* Without a period; those of X are odd, those of Y even and not 0. */
static double value_x(size_t i) { return pl_value(i); }
static double value_y(size_t i) { return 2 * pl_value(i); }

static void touch(const pl_case *c, int thread, int threads)
{
    const pl_range part = pl_part(c->n, thread, threads);
    for (size_t i = part.begin; i < part.end; i++) {
        array(c, X)[i] = value_x(i);
        array(c, Y)[i] = value_y(i);
    }
}

static void plan(const pl_case *c, pl_plan *p)
{
    p->at[X] = array(c, X) + p->part.begin;
    p->at[Y] = array(c, Y) + p->part.begin;
}

static void run(const pl_case *c, const pl_plan *p)
{
    ((strided_loop *)p->loop)(p->part.end - p->part.begin, p->at[X], p->at[Y], c->parameters);
}

/* Elements of X, n with stride k, that the first runs of a pass move: n/k each, and one more those that begin before
 * n%k. */
static size_t moved_by(size_t n, size_t k, size_t runs)
{
    const size_t longer = (n % k + STRIDED_LINE - 1) / STRIDED_LINE;
    return runs * (n / k) + (runs < longer ? runs : longer);
}

static size_t moved(size_t n, size_t k) { return moved_by(n, k, strided_runs(k)); }

static double share(const pl_case *c, int thread)
{
    const pl_range part = pl_part(c->n, thread, c->threads);
    return (double)moved(part.end - part.begin, (size_t)c->parameters[STRIDED_STRIDE]);
}

/* Beyond L1 whole lines move: a line of X gives 8/k elements, and only one from k = 8 on. */
static pl_work work(const pl_case *c)
{
    const size_t k = (size_t)c->parameters[STRIDED_STRIDE];
    double n = 0;
    for (int thread = 0; thread < c->threads; thread++)
        n += share(c, thread);
    pl_work w = {.load_bytes = 8 * n, .store_bytes = 8 * n,
                 .source = "model: 8 min(k, 8) bytes of lines of X and 8 of Y per element (anderson1997, figure 3)"};
    if (c->level == 1)
        return w;
    const double lines = 8 * n * (double)(k < STRIDED_LINE ? k : STRIDED_LINE);
    if (writes(c)) {
        w.fetched_bytes = 8 * n;
        w.written_bytes = lines;
    } else {
        w.fetched_bytes = lines;
        w.written_bytes = 8 * n;
    }
    return w;
}

/* Bounds of a thread's part, its arrays, and how much of its part of Y a pass writes: not what follows. */
typedef struct {
    size_t n, begin, length;
    double *x, *y;
} part_view;

static part_view view(const pl_case *c, int thread)
{
    const pl_range part = pl_part(c->n, thread, c->threads);
    const size_t n = part.end - part.begin;
    return (part_view){n, part.begin, moved(n, (size_t)c->parameters[STRIDED_STRIDE]), array(c, X) + part.begin, array(c, Y) + part.begin};
}

static const double BEHIND = 0.5;      /* no loop writes it: all values are whole */

static void poison(const pl_case *c)
{
    memset(array(c, writes(c) ? X : Y), 0xFF, c->n * sizeof(double));       /* not a number */
    for (int thread = 0; thread < c->threads; thread++) {
        const part_view v = view(c, thread);
        if (v.length < v.n)
            v.y[v.length] = BEHIND;
    }
}

/* Through X in the order of its index, which is not that of the loop; where an element stands in Y is computed. */
static double verify_part(const pl_case *c, int thread)
{
    const part_view v = view(c, thread);
    const size_t k = (size_t)c->parameters[STRIDED_STRIDE], runs = strided_runs(k);
    double worst = v.length < v.n && v.y[v.length] != BEHIND ? INFINITY : 0;
    size_t row = 0, offset = 0;     /* i / k, i % k */
    for (size_t i = 0; i < v.n; i++) {
        if (offset % STRIDED_LINE == 0 && offset / STRIDED_LINE < runs) {
            const size_t at = moved_by(v.n, k, offset / STRIDED_LINE) + row;
            worst = pl_worse(worst, writes(c) ? fabs(v.x[i] - value_y(v.begin + at)) : fabs(v.y[at] - value_x(v.begin + i)));
        } else if (writes(c) && !isnan(v.x[i]))
            worst = INFINITY;       /* lies between what is to be written */
        if (++offset == k) {
            offset = 0;
            row++;
        }
    }
    return worst;
}

static const pl_kernel strided = {
    .name = "strided", .title = "Strided copy: Y(1:n) = X(1:n*k:k) and back", .variants = variants, .parameters = parameters,
    .footprint = footprint, .create = create, .touch = touch, .plan = plan, .run = run, .share = share, .work = work,
    .verify_part = verify_part, .refresh = true, .poison = poison, .buffers = pl_data_buffers, .destroy = pl_buffers_destroy,
    .private_lines = true,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &strided); }
