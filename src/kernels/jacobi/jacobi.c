/* The Jacobi sweep as the runtime sees it: its table of variants, its data, its model, its verification. */
#include <math.h>
#include <string.h>

#include "kernel.h"

#define LOOP(function) .loop = (pl_loop)function

/* Where a name stands more than once, the widest that the CPU has is taken. */
static const pl_variant variants[] = {
    {"plain", LOOP(jacobi_plain), .about = "plane by plane, as the compiler makes it"},
    {"blocked", LOOP(jacobi_blocked), .about = "plain, a block of rows of all planes at a time"},
#if defined(__x86_64__)
    {"nt", .nontemporal = true, .isa = "avx512f", LOOP(jacobi_nt_avx512), .about = "plain, non-temporal stores"},
    {"nt", .nontemporal = true, .isa = "avx2", LOOP(jacobi_nt_avx2), .about = "plain, non-temporal stores"},
    {"nt", .nontemporal = true, .isa = "sse2", LOOP(jacobi_nt_sse2), .about = "plain, non-temporal stores"},
    {"prefetch", .nontemporal = true, .isa = "avx512f", LOOP(jacobi_prefetch_avx512), .about = "nt, software prefetch"},
    {"prefetch", .nontemporal = true, .isa = "avx2", LOOP(jacobi_prefetch_avx2), .about = "nt, software prefetch"},
    {"prefetch", .nontemporal = true, .isa = "sse2", LOOP(jacobi_prefetch_sse2), .about = "nt, software prefetch"},
    {"blocked_nt", .nontemporal = true, .isa = "avx512f", LOOP(jacobi_blocked_nt_avx512), .about = "nt in the order of blocked"},
    {"blocked_nt", .nontemporal = true, .isa = "avx2", LOOP(jacobi_blocked_nt_avx2), .about = "nt in the order of blocked"},
    {"blocked_nt", .nontemporal = true, .isa = "sse2", LOOP(jacobi_blocked_nt_sse2), .about = "nt in the order of blocked"},
    {"blocked_prefetch", .nontemporal = true, .isa = "avx512f", LOOP(jacobi_blocked_prefetch_avx512), .about = "prefetch in the order of blocked"},
    {"blocked_prefetch", .nontemporal = true, .isa = "avx2", LOOP(jacobi_blocked_prefetch_avx2), .about = "prefetch in the order of blocked"},
    {"blocked_prefetch", .nontemporal = true, .isa = "sse2", LOOP(jacobi_blocked_prefetch_sse2), .about = "prefetch in the order of blocked"},
#else
    {"nt", .about = "intrinsics are written for x86-64 only"},
    {"prefetch", .about = "intrinsics are written for x86-64 only"},
    {"blocked_nt", .about = "intrinsics are written for x86-64 only"},
    {"blocked_prefetch", .about = "intrinsics are written for x86-64 only"},
#endif
    {0},
};

enum { PLANES, BLOCK, DISTANCE };

static const pl_tuning tuning[] = {
    [PLANES] = {"planes", 0, 1, "planes, boundary included; 0: as many as rows", .of_data = true},
    [BLOCK] = {"block-rows", 0, 1, "rows of a block; 0: as many as three planes of them stay in a cache"},
    [DISTANCE] = {"distance", 768, 8, "prefetch distance in elements"},
    {0},
};

/* --- data ------------------------------------------------------------------------------------------------------ */

enum { LINE = PL_LINE / sizeof(double), IN = 0, OUT = 1 };

/* Whole cache lines, an odd number of them: neighbours in rows and planes never fall into one set, whatever n is.
 * anderson1997, section 3.1.3; what happens without is the subject of ninepoint. */
static size_t odd_lines(size_t elements) { return ((elements + LINE - 1) / LINE | 1) * LINE; }

static size_t planes_of(const pl_case *c) { return c->tuning[PLANES] ? (size_t)c->tuning[PLANES] : c->n; }

static jacobi_box box_of(const pl_case *c)
{
    const size_t row = odd_lines(c->n);
    return (jacobi_box){.n = c->n, .rows = c->n, .row = row, .plane = odd_lines(c->n * row)};
}

static void check(const pl_case *c)
{
    if (2.0 * (double)c->n * (double)c->n * (double)planes_of(c) * sizeof(double) > 1e15)
        pl_fail("--size %zu: is the edge of two boxes of %zu planes: give a smaller one, or fewer --planes", c->n, planes_of(c));
}

static size_t bytes_of_array(const pl_case *c) { return planes_of(c) * box_of(c).plane * sizeof(double); }

static size_t footprint(const pl_case *c) { return 2 * bytes_of_array(c); }

/* The first interior point of each row begins a cache line, as non-temporal stores need it; and half a page between the
 * two arrays: a load from the same place of a page as the last store would wait for it on some processors. */
static void *create(const pl_case *c)
{
    const size_t bytes = bytes_of_array(c);
    return pl_buffers_create(c, 2, (size_t[]){bytes, bytes}, (size_t[]){PL_LINE - sizeof(double), 2048 + PL_LINE - sizeof(double)});
}

static double *array_of(const pl_case *c, int which) { return ((const pl_buffers *)c->data)->at[which]; }

/* The interior planes that a thread computes. */
static pl_range planes_of_thread(const pl_case *c, int thread, int threads)
{
    const size_t planes = planes_of(c);
    const pl_range part = pl_part(planes > 2 ? planes - 2 : 0, thread, threads);
    return (pl_range){part.begin + 1, part.end + 1};
}

/* Small whole numbers, so that all results are exact; without a period along a row, and each row has another order. */
static int value(size_t i, size_t j, size_t k) { return (int)((pl_mix(i) ^ pl_mix(j << 32 | k)) & 1023); }

/* The first and the last thread have a plane of the boundary each; what pads a row is no number: nobody may read it. */
static void touch(const pl_case *c, int thread, int threads)
{
    const jacobi_box box = box_of(c);
    const pl_range inner = planes_of_thread(c, thread, threads);
    const size_t first = thread ? inner.begin : 0, last = thread < threads - 1 ? inner.end : planes_of(c);
    double *const in = array_of(c, IN), *const out = array_of(c, OUT);
    for (size_t k = first; k < last; k++) {
        for (size_t at = k * box.plane; at < (k + 1) * box.plane; at++) {
            in[at] = NAN;
            out[at] = 0;
        }
        for (size_t j = 0; j < box.rows; j++)
            for (size_t i = 0; i < box.n; i++)
                in[k * box.plane + j * box.row + i] = value(i, j, k);
    }
}

/* --- the sweep and its model ------------------------------------------------------------------------------------- */

/* Rows of three planes that stay in this thread's share of a cache until they are needed again, while what is written
 * passes through it as well: half of it.  Of the level, or the next one below it that there is. */
static size_t rows_that_stay(const pl_case *c, int level)
{
    size_t share = 0;
    for (; level > 0 && !share; level--)
        share = pl_cache_share(c, level);
    return share / 2 / (3 * box_of(c).row * sizeof(double));
}

/* Rows of a block: two more are read.  As L2 holds them, or, where those are few, L3. */
static size_t block_of(const pl_case *c)
{
    enum { FEW = 4 };
    const size_t rows = c->n > 2 ? c->n - 2 : 1;
    size_t block = rows;
    if (!strncmp(c->variant->name, "blocked", 7))
        block = (size_t)c->tuning[BLOCK];
    for (int level = 2; !block && level <= 3; level++) {
        const size_t stay = rows_that_stay(c, level);
        block = stay >= FEW + 2 ? stay - 2 : level == 3 ? 1 : 0;
    }
    return block < rows ? block : rows;
}

static void run(const pl_case *c, int thread, long passes)
{
    jacobi_box box = box_of(c);
    jacobi_loop *const loop = (jacobi_loop *)c->variant->loop;
    const pl_range planes = planes_of_thread(c, thread, c->threads);
    box.block = block_of(c);
    box.distance = (size_t)c->tuning[DISTANCE];
    for (long pass = 0; pass < passes; pass++)
        loop(&box, planes.begin, planes.end, array_of(c, OUT), array_of(c, IN));
}

/* For the record: what 0 stands for. */
static const pl_fact *facts(const pl_case *c)
{
    static pl_fact found[3] = {{.name = "planes-used"}, {.name = "block-rows-used"}};
    found[0].number = (double)planes_of(c);
    found[1].number = (double)block_of(c);
    return found;
}

/* The layer condition.  If three planes of a block stay in the caches below the case's level, each row is loaded once;
 * two more for each block unless all that a block needs stays, and two more planes for each thread.  If only three rows stay,
 * those of the three planes are loaded each time; if not even they do, all five rows that a point needs. */
static pl_work work(const pl_case *c)
{
    const double rows = c->n > 2 ? (double)(c->n - 2) : 0;
    const size_t block = block_of(c), stay = rows_that_stay(c, c->level ? c->level - 1 : 3);
    const double row_bytes = 8 * (double)box_of(c).row;     /* whole lines */
    pl_work w = {.source = "model: 7 loads and 1 store of 8 bytes per point"};
    for (int thread = 0; thread < c->threads; thread++) {
        const pl_range part = planes_of_thread(c, thread, c->threads);
        const double planes = (double)(part.end - part.begin), points = planes * rows * rows;
        w.load_bytes += 56 * points;
        w.store_bytes += 8 * points;
        w.flops += 8 * points;
        if (c->level == 1 || points == 0)
            continue;
        /* Rows of `in` and of `out` that a block needs of all planes, against those of three planes of `in`. */
        const bool whole_block_stays = 2 * (planes + 2) * (double)(block + 2) <= 3 * (double)stay;
        const double twice = whole_block_stays ? 2 : 2 * ceil(rows / (double)block);
        w.written_bytes += 8 * points;
        if (block + 2 <= stay) {
            w.fetched_bytes += row_bytes * (planes * (rows + twice) + 2 * rows);
            w.source = "model: three planes stay in the cache below: 1 load and 1 store of 8 bytes per point";
        } else if (stay >= 1) {
            w.fetched_bytes += row_bytes * planes * (3 * rows + 2);
            w.source = "model: three rows stay in the cache below, not three planes: 3 loads and 1 store of 8 bytes per point";
        } else {
            w.fetched_bytes += row_bytes * planes * 5 * rows;
            w.source = "model: three rows do not stay in the cache below: 5 loads and 1 store of 8 bytes per point";
        }
    }
    return w;
}

/* --- verification ------------------------------------------------------------------------------------------------ */

static void poison(const pl_case *c)
{
    memset(array_of(c, OUT), 0xFF, bytes_of_array(c));  /* not a number */
    pl_buffers_set_guards(c->data);
}

static bool untouched(const double *v)
{
    static const unsigned char poisoned[8] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
    return !memcmp(v, poisoned, sizeof poisoned);
}

/* Whole numbers, from the index alone: in eighths, u is 2 of the centre and 1 of each neighbour. */
static double expected(size_t i, size_t j, size_t k)
{
    const int eighths = 2 * value(i, j, k) + value(i - 1, j, k) + value(i + 1, j, k) + value(i, j - 1, k) + value(i, j + 1, k) +
                        value(i, j, k - 1) + value(i, j, k + 1);
    return eighths / 8.0;
}

/* Largest error of an interior row; a loop that has none of it, which is as fast as the sweep, comes first. */
static double error_of_row(const jacobi_box *box, const double *v, size_t j, size_t k)
{
    int wrong = 0;
    double worst = 0;
    for (size_t i = 1; i + 1 < box->n; i++)
        wrong |= v[i] != expected(i, j, k);
    for (size_t i = 1; wrong && i + 1 < box->n; i++) {
        const double error = fabs(v[i] - expected(i, j, k));
        if (isnan(error))
            return error;
        worst = pl_worse(worst, error);
    }
    return worst;
}

/* Every interior point is right; boundary, padding and guards are as they were, and so is the input. */
static double verify(const pl_case *c)
{
    const jacobi_box box = box_of(c);
    const size_t planes = planes_of(c);
    double worst = pl_buffers_guards_intact(c->data) ? 0 : INFINITY;
    for (size_t k = 0; k < planes; k++)
        for (size_t j = 0; j < box.rows; j++) {
            const size_t row = k * box.plane + j * box.row;
            const double *const u = array_of(c, IN) + row, *const v = array_of(c, OUT) + row;
            const bool inner = k > 0 && j > 0 && k + 1 < planes && j + 1 < box.rows && box.n > 2;
            const double error = inner ? error_of_row(&box, v, j, k) : 0;
            bool changed = !untouched(v);
            if (isnan(error))
                return error;
            worst = pl_worse(worst, error);
            for (size_t i = inner ? box.n - 1 : 1; i < box.row; i++)
                changed |= !untouched(v + i);
            for (size_t i = 0; i < box.n; i++)
                changed |= u[i] != value(i, j, k);
            if (changed)
                worst = INFINITY;
        }
    return worst;
}

static const void *where(const pl_case *c, size_t *bytes)
{
    *bytes = bytes_of_array(c);
    return array_of(c, OUT);
}

static const pl_kernel jacobi = {
    .name = "jacobi", .title = "Seven-point Jacobi sweep in three dimensions", .variants = variants, .tuning = tuning,
    .check = check, .footprint = footprint, .create = create, .touch = touch, .run = run, .work = work, .verify = verify,
    .poison = poison, .where = where, .destroy = pl_buffers_destroy, .facts = facts,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &jacobi); }
