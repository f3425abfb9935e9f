/* The Jacobi sweep as the runtime sees it: its table of variants, its data, its model, its verification. */
#include <math.h>
#include <string.h>

#include "kernel.h"

static const pl_variant variants[] = {
    {"plain", PL_LOOP(jacobi_plain), .about = "plane by plane, as the compiler makes it"},
    {"blocked", PL_LOOP(jacobi_blocked), .about = "plain, a block of rows of all planes at a time"},
    PL_WIDEST("nt", jacobi_nt, .nontemporal = true, .about = "plain, non-temporal stores")
    PL_WIDEST("prefetch", jacobi_prefetch, .nontemporal = true, .about = "nt, software prefetch")
    PL_WIDEST("blocked_nt", jacobi_blocked_nt, .nontemporal = true, .about = "nt in the order of blocked")
    PL_WIDEST("blocked_prefetch", jacobi_blocked_prefetch, .nontemporal = true, .about = "prefetch in the order of blocked")
    {0},
};

enum { PLANES, BLOCK, DISTANCE };

static const pl_parameter parameters[] = {
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

static size_t planes_of(const pl_case *c) { return c->parameters[PLANES] ? (size_t)c->parameters[PLANES] : c->n; }

static size_t inner_rows(const pl_case *c) { return c->n > 2 ? c->n - 2 : 0; }

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

/* The interior rows that a thread computes, plane by plane: planes alone may be too few for many threads. */
static pl_range rows_of_thread(const pl_case *c, int thread, int threads)
{
    const size_t planes = planes_of(c);
    return pl_narrow(c, pl_part(planes > 2 ? (planes - 2) * inner_rows(c) : 0, thread, threads));
}

/* Small whole numbers, so that all results are exact; without a period along a row, and each row has another order. */
static inline uint32_t key(size_t j, size_t k) { return pl_mix(j << 32 | k); }
static inline int value(uint32_t key, size_t i) { return (int)((pl_mix(i) ^ key) & 1023); }

/* Where in the arrays the interior row of this number begins. */
static size_t begin_of_row(const pl_case *c, size_t number)
{
    const jacobi_box box = box_of(c);
    return (number / inner_rows(c) + 1) * box.plane + (number % inner_rows(c) + 1) * box.row;
}

/* The boundary goes with the rows beside it; what pads a row is no number: nobody may read it. */
static void touch(const pl_case *c, int thread, int threads)
{
    const jacobi_box box = box_of(c);
    const pl_range inner = rows_of_thread(c, thread, threads);
    const bool none = inner_rows(c) == 0 || planes_of(c) < 3;
    const size_t first = thread && !none ? begin_of_row(c, inner.begin) : 0;
    const size_t last = thread == threads - 1 ? planes_of(c) * box.plane : none ? 0 : begin_of_row(c, inner.end);
    double *const in = array_of(c, IN), *const out = array_of(c, OUT);
    for (size_t row = first, end; row < last; row = end) {
        const size_t k = row / box.plane, j = row % box.plane / box.row;
        const uint32_t own = key(j, k);
        end = j < box.rows ? row + box.row : (k + 1) * box.plane;
        for (size_t i = 0; i < end - row; i++) {
            in[row + i] = i < box.n && j < box.rows ? (double)value(own, i) : NAN;
            out[row + i] = 0;
        }
    }
}

/* --- the sweep and its model ------------------------------------------------------------------------------------- */

/* Rows of three planes that stay in this thread's share of a cache until they are needed again, while what is written
 * passes through it as well: half of it.  Of the level, or the next one below it that there is. */
static size_t rows_that_stay(const pl_case *c, int level)
{
    return pl_cache_up_to(c, level) / 2 / (3 * box_of(c).row * sizeof(double));
}

/* Rows of a block: two more are read.  As L2 holds them, or, where those are few, L3. */
static size_t block_of(const pl_case *c)
{
    enum { FEW = 4 };
    const size_t rows = c->n > 2 ? c->n - 2 : 1;
    size_t block = rows;
    if (!strncmp(c->variant->name, "blocked", 7))
        block = (size_t)c->parameters[BLOCK];
    for (int level = 2; !block && level <= 3; level++) {
        const size_t stay = rows_that_stay(c, level);
        block = stay >= FEW + 2 ? stay - 2 : level == 3 ? 1 : 0;
    }
    return block < rows ? block : rows;
}

static void plan(const pl_case *c, pl_plan *p)
{
    p->part = rows_of_thread(c, p->thread, c->threads);
    p->pieces = pl_pieces(p->part, inner_rows(c), p->piece);
    p->block = block_of(c);
}

static void run(const pl_case *c, const pl_plan *p)
{
    jacobi_box box = box_of(c);
    box.block = p->block;
    box.distance = (size_t)c->parameters[DISTANCE];
    for (int i = 0; i < p->pieces; i++) {
        const pl_piece *const piece = &p->piece[i];
        box.from = piece->inner.begin + 1;
        box.to = piece->inner.end + 1;
        ((jacobi_loop *)p->loop)(&box, piece->outer.begin + 1, piece->outer.end + 1, array_of(c, OUT), array_of(c, IN));
    }
}

/* For the record: what 0 stands for. */
static void facts(const pl_case *c, pl_fact *found)
{
    found[0] = (pl_fact){"planes-used", NULL, (double)planes_of(c)};
    found[1] = (pl_fact){"block-rows-used", NULL, (double)block_of(c)};
}

/* The layer condition.  If three planes of a block stay in the caches below the case's level, each row is loaded once; two
 * more for each block unless all that a block needs stays, and, for each thread or, where whole planes do not stay, each of
 * its pieces, as many as it has in the planes at its ends.  If only three rows stay, those of the three planes are loaded each
 * time; if not even they do, all five rows that a point needs. */
static pl_work work(const pl_case *c)
{
    const double rows = (double)inner_rows(c), points = rows * rows * (planes_of(c) > 2 ? (double)(planes_of(c) - 2) : 0);
    const size_t block = block_of(c), stay = rows_that_stay(c, c->level ? c->level - 1 : 3);
    pl_work w = {.load_bytes = 56 * points, .store_bytes = 8 * points, .flops = 8 * points,
                 .source = "model: 7 loads and 1 store of 8 bytes per point"};
    if (c->level == 1 || points == 0)
        return w;
    double fetched = 0;
    for (int thread = 0; thread < c->threads; thread++) {
        pl_piece piece[PL_PIECES];
        const pl_range part = rows_of_thread(c, thread, c->threads);
        const int pieces = pl_pieces(part, inner_rows(c), piece);
        const bool whole_planes_stay = rows + 2 <= (double)stay;
        double ends = 0;
        for (int i = 0; i < pieces; i++) {
            const double planes = (double)(piece[i].outer.end - piece[i].outer.begin);
            const double height = (double)(piece[i].inner.end - piece[i].inner.begin);
            /* Rows of `in` and of `out` that a block needs of all planes, against those of three planes of `in`. */
            const bool whole_block_stays = 2 * (planes + 2) * (double)(block + 2) <= 3 * (double)stay;
            const double blocks = whole_block_stays ? 1 : ceil(height / (double)block);
            if (block + 2 <= stay)
                fetched += planes * (height + 2 * blocks);
            else
                fetched += planes * (stay >= 1 ? 3 * height + 2 : 5 * height);
            ends += 2 * height;
        }
        if (block + 2 <= stay)
            fetched += whole_planes_stay ? 2 * fmin((double)(part.end - part.begin), rows) : ends;
    }
    w.written_bytes = 8 * points;
    w.fetched_bytes = 8 * (double)box_of(c).row * fetched;      /* whole lines */
    w.source = block + 2 <= stay ? "model: three planes stay in the cache below: 1 load and 1 store of 8 bytes per point"
               : stay >= 1       ? "model: three rows stay in the cache below, not three planes: 3 loads and 1 store of 8 bytes per point"
                                 : "model: three rows do not stay in the cache below: 5 loads and 1 store of 8 bytes per point";
    return w;
}

/* --- verification ------------------------------------------------------------------------------------------------ */

static void poison(const pl_case *c) { memset(array_of(c, OUT), 0xFF, bytes_of_array(c)); }     /* not a number */

/* Of the rows that an interior row's points need, what value() mixes with i; the row itself first. */
typedef struct { uint32_t own, beside[4]; } row_keys;

static row_keys keys_of(size_t j, size_t k)
{
    return (row_keys){key(j, k), {key(j - 1, k), key(j + 1, k), key(j, k - 1), key(j, k + 1)}};
}

/* Whole numbers, from the index alone: in eighths, u is 2 of the centre and 1 of each neighbour. */
static inline double expected(row_keys of, size_t i)
{
    int eighths = 2 * value(of.own, i) + value(of.own, i - 1) + value(of.own, i + 1);
    for (int n = 0; n < 4; n++)
        eighths += value(of.beside[n], i);
    return eighths / 8.0;
}

/* Largest error of an interior row; a loop that has none of it, which is as fast as the sweep, comes first. */
static double error_of_row(const jacobi_box *box, const double *v, size_t j, size_t k)
{
    const row_keys of = keys_of(j, k);
    int wrong = 0;
    double worst = 0;
    for (size_t i = 1; i + 1 < box->n; i++)
        wrong |= v[i] != expected(of, i);
    for (size_t i = 1; wrong && i + 1 < box->n; i++)
        worst = pl_worse(worst, fabs(v[i] - expected(of, i)));
    return worst;
}

/* Every interior point is right; boundary, padding and guards are as they were, and so is the input.  A thread looks at its part of
 * all rows. */
static double verify_part(const pl_case *c, int thread)
{
    const jacobi_box box = box_of(c);
    const size_t planes = planes_of(c);
    const pl_range part = pl_part(planes * box.rows, thread, c->threads);
    double worst = 0;
    for (size_t number = part.begin; number < part.end; number++) {
        const size_t k = number / box.rows, j = number % box.rows, row = k * box.plane + j * box.row;
        const double *const u = array_of(c, IN) + row, *const v = array_of(c, OUT) + row;
        const bool inner = k > 0 && j > 0 && k + 1 < planes && j + 1 < box.rows && box.n > 2;
        const uint32_t own = key(j, k);
        int changed = !pl_untouched(v);
        for (size_t i = inner ? box.n - 1 : 1; i < box.row; i++)
            changed |= !pl_untouched(v + i);
        for (size_t i = 0; i < box.n; i++)
            changed |= u[i] != value(own, i);
        worst = pl_worse(worst, inner ? error_of_row(&box, v, j, k) : 0);
        worst = pl_worse(worst, changed ? INFINITY : 0);
    }
    return worst;
}

static const pl_kernel jacobi = {
    .name = "jacobi", .title = "Seven-point Jacobi sweep in three dimensions", .variants = variants, .parameters = parameters,
    .check = check, .footprint = footprint, .create = create, .touch = touch, .plan = plan, .narrows = true, .run = run, .work = work,
    .verify_part = verify_part, .poison = poison, .buffers = pl_data_buffers, .destroy = pl_buffers_destroy, .facts = facts,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &jacobi); }
