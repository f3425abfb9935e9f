/* Gather and scatter with index sets that are made here: uniform, random, mostly stride 1, random within windows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

enum { DIRECTION, INDICES, SPAN, RUN, WINDOW, SEED, DISTANCE };
enum { UNIFORM, RANDOM, MS1, LOCAL };

static const char *const directions[] = {"gather", "scatter", NULL};
static const char *const index_sets[] = {"uniform", "random", "ms1", "local", NULL};

static const pl_parameter parameters[] = {
    [DIRECTION] = {"direction", 0, 1, "x(i) = a(index(i)), or a(index(i)) = x(i)", .words = directions},
    [INDICES] = {"indices", UNIFORM, 1,
                 "every --span-th element; random; runs of --run elements at stride 1, then a jump; random within --window",
                 .words = index_sets, .of_data = true},
    [SPAN] = {"span", 1, 1, "elements of a for each one that is taken: the stride of uniform", .of_data = true},
    [RUN] = {"run", 8, 1, "ms1: elements of a run", .of_data = true},
    [WINDOW] = {"window", 512, 1, "local: elements of a in one window", .of_data = true},
    [SEED] = {"seed", 1, 1, "random, local: another number, another set", .of_data = true},
    [DISTANCE] = {"distance", 64, 1, "prefetch distance in elements"},
    {0},
};

static size_t length_of_a(const pl_case *c) { return c->n * (size_t)c->parameters[SPAN]; }

static gather_kind kind(const pl_case *c) { return c->parameters[DIRECTION] ? SCATTER : GATHER; }

static void check(const pl_case *c)
{
    if (c->n > (size_t)GATHER_INDEX_MAX / (size_t)c->parameters[SPAN])
        pl_fail("--size %zu: with --span %ld the array has more elements than 32-bit indices reach, %d: choose a smaller size "
                "or span", c->n, c->parameters[SPAN], GATHER_INDEX_MAX);
}

/* --- the index sets: functions of i, all indices of a set distinct ------------------------------------------ */

/* A permutation of 0 .. n-1 without a table: mixing that can be undone on the next power of two, repeated until it
 * ends below n. */
static size_t permuted(size_t i, size_t n, uint64_t seed)
{
    const int bits = n > 1 ? 64 - __builtin_clzll(n - 1) : 0, half = bits > 1 ? (bits + 1) / 2 : 1;
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    uint64_t x = i;
    do
        for (int round = 0; round < 3; round++) {
            x = (x * 0x9E3779B97F4A7C15u + seed * 0xD1B54A32D192ED03u + (uint64_t)round) & mask;
            x ^= x >> half;
        }
    while (x >= n);
    return (size_t)x;
}

/* Elements taken from each window but the last. */
static size_t per_window(const pl_case *c)
{
    const size_t each = (size_t)(c->parameters[WINDOW] / c->parameters[SPAN]);
    return each ? each : 1;
}

static size_t index_of(const pl_case *c, size_t i)
{
    const size_t span = (size_t)c->parameters[SPAN], run = (size_t)c->parameters[RUN];
    const uint64_t seed = (uint64_t)c->parameters[SEED];
    switch (c->parameters[INDICES]) {
    case UNIFORM:
        return i * span;
    case RANDOM:
        return permuted(i, c->n * span, seed);
    case MS1:
        return i / run * run * span + i % run;
    default: {
        const size_t each = per_window(c), begin = i / each * each, here = c->n - begin < each ? c->n - begin : each;
        return begin * span + permuted(i - begin, here * span, seed + i / each);
    }
    }
}

/* --- data ------------------------------------------------------------------------------------------------- */

enum { A, X, INDEX, BUFFERS };

typedef struct {
    pl_buffers *buffers;
    uint64_t *member;       /* one bit for each element of a: is it among the indices? */
    double lines;           /* of gather_lines(), for this level and these threads */
    int level, threads;
} set;

static size_t footprint(const pl_case *c) { return sizeof(double) * (length_of_a(c) + c->n) + sizeof(int32_t) * c->n; }

static size_t words(const pl_case *c) { return length_of_a(c) / 64 + 1; }

static void *create(const pl_case *c)
{
    const size_t bytes[BUFFERS] = {sizeof(double) * length_of_a(c), sizeof(double) * c->n, sizeof(int32_t) * c->n};
    set *s = pl_allocate(sizeof *s, "the index set");
    s->buffers = pl_buffers_create(c, BUFFERS, bytes, NULL);
    s->member = pl_allocate(words(c) * sizeof *s->member, "the index set");
    for (size_t i = 0; i < c->n; i++) {
        const size_t k = index_of(c, i);
        s->member[k / 64] |= (uint64_t)1 << k % 64;
    }
    return s;
}

static void destroy(void *data)
{
    free(((set *)data)->member);
    pl_first_buffers_destroy(data);
}

static double *array(const pl_case *c, int which) { return ((const set *)c->data)->buffers->at[which]; }

static int32_t *indices(const pl_case *c) { return ((const set *)c->data)->buffers->at[INDEX]; }

/* The part.begin-th to part.end-th of the indices in ascending order. */
static void sorted_indices(const pl_case *c, pl_range part)
{
    const uint64_t *member = ((const set *)c->data)->member;
    size_t rank = 0;
    for (size_t word = 0; rank < part.end; word++) {
        const size_t here = (size_t)__builtin_popcountll(member[word]);
        if (rank + here > part.begin)
            for (uint64_t rest = member[word], at = rank; rest; rest &= rest - 1, at++)
                if (at >= part.begin && at < part.end)
                    indices(c)[at] = (int32_t)(64 * word + (size_t)__builtin_ctzll(rest));
        rank += here;
    }
}

/* Each element tells where it came from, exactly, and only who has read it knows. */
static void touch(const pl_case *c, int thread, int threads)
{
    const pl_range all = pl_part(length_of_a(c), thread, threads), part = pl_part(c->n, thread, threads);
    for (size_t k = all.begin; k < all.end; k++)
        array(c, A)[k] = pl_value(k);
    for (size_t i = part.begin; i < part.end; i++) {
        array(c, X)[i] = 0;
        if (!gather_is_sorted(c->variant))
            indices(c)[i] = (int32_t)index_of(c, i);
    }
    if (gather_is_sorted(c->variant))
        sorted_indices(c, part);
}

static void plan(const pl_case *c, pl_plan *p) { p->loop = (pl_loop)gather_loop_of(c->variant, kind(c)); }

static void run(const pl_case *c, const pl_plan *p)
{
    const gather_rows row = {.last = 1, .length = p->part.end - p->part.begin, .wrap = 1, .block = 1, .ahead = (size_t)c->parameters[DISTANCE]};
    double *const x = array(c, X) + p->part.begin, *const a = array(c, A);
    const bool gathers = kind(c) == GATHER;
    if (row.length)
        ((gather_loop *)p->loop)(&row, gathers ? x : a, gathers ? a : x, indices(c) + p->part.begin, NULL);
}

/* --- model ------------------------------------------------------------------------------------------------ */

static gather_accesses accesses(const pl_case *c, int thread)
{
    const pl_range part = pl_part(c->n, thread, c->threads);
    return (gather_accesses){.last = 1, .length = part.end - part.begin, .index = indices(c) + part.begin};
}

static double lines(const pl_case *c)
{
    set *s = c->data;
    if (s->threads != c->threads || s->level != c->level) {
        s->lines = gather_lines(c, length_of_a(c), accesses);
        s->threads = c->threads;
        s->level = c->level;
    }
    return s->lines;
}

static pl_work work(const pl_case *c)
{
    const double n = (double)c->n, touched = c->level == 1 ? 8 * n : PL_LINE * lines(c);
    pl_work w = {.source = "model: 4 bytes of index and 8 of x per element, and the lines of a that are accessed, counted; "
                           "again only after as many other accesses as the cache below has lines; 8 bytes per element are "
                           "moved"};
    if (kind(c) == GATHER) {
        w.load_bytes = 8 * n;
        w.fetched_bytes = 4 * n + touched;
        w.written_bytes = 8 * n;
    } else {
        w.store_bytes = 8 * n;
        w.fetched_bytes = 12 * n;
        w.written_bytes = touched;
    }
    return w;
}

/* --- verification ----------------------------------------------------------------------------------------- */

/* The side that is written is made not a number; the other has its values: the other direction has used both. */
static void poison(const pl_case *c)
{
    if (kind(c) == GATHER) {
        memset(array(c, X), 0xFF, sizeof(double) * c->n);
        for (size_t k = 0; k < length_of_a(c); k++)
            array(c, A)[k] = pl_value(k);
    } else {
        memset(array(c, A), 0xFF, sizeof(double) * length_of_a(c));
        for (size_t i = 0; i < c->n; i++)
            array(c, X)[i] = pl_value((uint64_t)indices(c)[i]);
    }
}

/* The indices are those of the set, in its order or, sorted, in ascending order, whatever else has been written. */
static bool indices_are_right(const pl_case *c)
{
    const uint64_t *member = ((const set *)c->data)->member;
    const int32_t *index = indices(c);
    for (size_t i = 0; i < c->n; i++)
        if (!gather_is_sorted(c->variant)) {
            if (index[i] < 0 || (size_t)index[i] != index_of(c, i))
                return false;
        } else if (index[i] <= (i ? index[i - 1] : -1) || (size_t)index[i] >= length_of_a(c) ||
                   !(member[index[i] / 64] >> index[i] % 64 & 1))
            return false;
    return true;
}

/* After a gather x(i) is the value of index(i), and a is as it was.  After a scatter a(index(i)) is that, and n elements of a are
 * numbers, not more: the indices are distinct. */
static double verify(const pl_case *c)
{
    const double *a = array(c, A), *x = array(c, X);
    double worst = indices_are_right(c) ? 0 : INFINITY;
    size_t numbers = 0;
    for (size_t i = 0; i < c->n && isfinite(worst); i++) {
        const double value = pl_value((uint64_t)indices(c)[i]), error = fmax(fabs(x[i] - value), fabs(a[indices(c)[i]] - value));
        worst = isnan(x[i]) || isnan(a[indices(c)[i]]) ? NAN : fmax(worst, error);
    }
    for (size_t k = 0; k < length_of_a(c) && isfinite(worst); k++) {
        numbers += !isnan(a[k]);
        if (!isnan(a[k]) && a[k] != pl_value(k))
            worst = fmax(worst, fabs(a[k] - pl_value(k)));
    }
    return numbers == (kind(c) == GATHER ? length_of_a(c) : c->n) || !isfinite(worst) ? worst : INFINITY;
}

static const pl_kernel gather = {
    .name = "gather", .title = "x(:) = a(index(:)), a(index(:)) = x(:)", .variants = gather_variants, .parameters = parameters,
    .check = check, .footprint = footprint, .create = create, .touch = touch, .plan = plan, .run = run,
    .work = work, .verify = verify, .poison = poison, .buffers = pl_first_buffers, .destroy = destroy,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &gather); }
