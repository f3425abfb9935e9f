/* The nine-point kernel as the runtime sees it: how its arrays are placed, its model, its verification. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* Layouts.  PLAIN is as in the source before its change, PADDED as after it; CONFLICTING is what the source feared, made
 * certain on caches of other sizes than its own. */
enum { PLAIN, ALIGNED, PADDED, CONFLICTING };

static const pl_variant variants[] = {
    {"plain", .layout = PLAIN, .loop = (pl_loop)ninepoint_plain, .about = "leading dimension n, one array right after another"},
    {"aligned", .layout = ALIGNED, .loop = (pl_loop)ninepoint_plain,
     .about = "columns and arrays begin at cache lines; the arrays at equal addresses modulo 4 KiB"},
    {"padded", .layout = PADDED, .loop = (pl_loop)ninepoint_plain,
     .about = "columns of whole cache lines, an odd number of them; the arrays side by side in the cache"},
    {"conflicting", .layout = CONFLICTING, .loop = (pl_loop)ninepoint_plain,
     .about = "columns at equal addresses modulo 4 KiB, arrays modulo 1 MiB"},
    PL_IN_FORTRAN("fortran", PL_FORTRAN_FLAGS, ninepoint_fortran, .layout = PLAIN, .about = "plain, in Fortran")
    {0},
};

/* --- the layouts ---------------------------------------------------------------------------------------------- */

enum { X, Y, AA, DD, RX, RY, ARRAYS };
enum { LINE = PL_LINE / sizeof(double), PAGE = 4096 / sizeof(double), MIB = (1 << 20) / sizeof(double) };

typedef struct {
    size_t ld;                  /* elements from column to column */
    size_t begin[ARRAYS + 1];   /* of each array, elements from the first one's; the last is the end of all */
} layout;

/* Each array at the next place where its offset modulo `window` is the one given. */
static void place(layout *l, size_t array_elements, size_t window, const size_t *offset)
{
    for (int k = X; k < ARRAYS; k++)
        l->begin[k + 1] = l->begin[k] + array_elements + (k < RY ? (offset[k + 1] - l->begin[k] - array_elements) % window : 0);
}

/* anderson1997, section 3.1.3 and figure 2: X and Y have room for three columns each, the four written arrays for 128
 * words each, in a window as large as a way of that cache, 4096 words; here as large as these need.  For n = 513 this is
 * the source's own layout: leading dimension 520, offsets 0, 1560, 3120, 3248, 3376 and 3504 modulo 4096.  An odd number of
 * cache lines keeps the columns apart where n is a power of two; the source had no such n. */
static layout padded(size_t n)
{
    layout l = {.ld = (pl_round_up(n, LINE) / LINE | 1) * LINE};
    const size_t columns = 3 * l.ld, written = 128;
    size_t window = 4096;
    while (window < 2 * columns + 4 * written)
        window *= 2;
    place(&l, n * l.ld, window, (const size_t[ARRAYS]){0, columns, 2 * columns, 2 * columns + written,
                                                      2 * columns + 2 * written, 2 * columns + 3 * written});
    return l;
}

static layout layout_of(const pl_case *c)
{
    static const size_t none[ARRAYS];
    const size_t n = c->n;
    layout l = {.ld = n};
    switch (c->variant->layout) {
    case PADDED:
        return padded(n);
    case ALIGNED:
        l.ld = pl_round_up(n, LINE);
        place(&l, n * l.ld, PAGE, none);
        return l;
    case CONFLICTING:
        l.ld = pl_round_up(n, PAGE);
        place(&l, n * l.ld, MIB, none);
        return l;
    default:
        place(&l, n * l.ld, 1, none);
        return l;
    }
}

/* --- data ------------------------------------------------------------------------------------------------------ */

typedef struct {
    pl_buffers *memory;     /* one buffer for all arrays: their distances are the subject */
    layout at;
    double *array[ARRAYS];
} arrays;

static void check(const pl_case *c)
{
    if ((double)c->n * (double)c->n * ARRAYS * sizeof(double) > 1e15)
        pl_fail("--size %zu: is the edge of six square arrays: give a smaller one", c->n);
}

static size_t footprint(const pl_case *c) { return ARRAYS * layout_of(c).ld * c->n * sizeof(double); }

static void *create(const pl_case *c)
{
    arrays *a = pl_allocate(sizeof *a, "the arrays");
    a->at = layout_of(c);
    a->memory = pl_buffers_create(c, 1, (size_t[]){a->at.begin[ARRAYS] * sizeof(double)}, NULL);
    for (int k = X; k < ARRAYS; k++)
        a->array[k] = (double *)a->memory->at[0] + a->at.begin[k];
    return a;
}

static size_t inner(const pl_case *c) { return c->n > 2 ? c->n - 2 : 0; }

/* The interior points that a thread computes, column by column: columns alone may be too few for many threads. */
static pl_range points_of(const pl_case *c, int thread, int threads) { return pl_part(inner(c) * inner(c), thread, threads); }

/* Small whole numbers, so that all results are exact; 0.25, 0.125 and REL are as well.  Random: all differences differ from
 * point to point. */
static int x_of(size_t i, size_t j) { return (int)(pl_mix(j << 32 | i) & 127) - 63; }
static int y_of(size_t i, size_t j) { return (int)(pl_mix(j << 32 | i) >> 7 & 127) - 63; }

/* Where in the arrays the interior point of this number is. */
static size_t place_of(const pl_case *c, size_t number)
{
    const arrays *a = c->data;
    return inner(c) ? (number / inner(c) + 1) * a->at.ld + number % inner(c) + 1 : 0;
}

/* The boundary goes with the points beside it; what pads a column is no number: nobody may read it. */
static void touch(const pl_case *c, int thread, int threads)
{
    const arrays *a = c->data;
    const pl_range own = points_of(c, thread, threads);
    const size_t first = thread ? place_of(c, own.begin) : 0;
    const size_t last = thread < threads - 1 ? place_of(c, own.end) : c->n * a->at.ld;
    for (size_t at = first, i = first % a->at.ld, j = first / a->at.ld; at < last; at++) {
        a->array[X][at] = i < c->n ? (double)x_of(i, j) : NAN;
        a->array[Y][at] = i < c->n ? (double)y_of(i, j) : NAN;
        a->array[AA][at] = a->array[DD][at] = a->array[RX][at] = a->array[RY][at] = 0;
        if (++i == a->at.ld) {
            i = 0;
            j++;
        }
    }
}

static void plan(const pl_case *c, pl_plan *p)
{
    p->part = points_of(c, p->thread, c->threads);
    p->pieces = pl_pieces(p->part, inner(c), p->piece);
}

static void run(const pl_case *c, const pl_plan *p)
{
    const arrays *a = c->data;
    for (const pl_piece *piece = p->piece; piece < p->piece + p->pieces; piece++)
        ((ninepoint_loop *)p->loop)(a->at.ld, piece->outer.begin + 1, piece->outer.end + 1, piece->inner.begin + 1, piece->inner.end + 1,
                                    a->array[X], a->array[Y], a->array[AA], a->array[DD], a->array[RX], a->array[RY]);
}

/* For the record: where the variants differ. */
static void facts(const pl_case *c, pl_fact *found)
{
    found[0] = (pl_fact){"leading-dimension", NULL, (double)layout_of(c).ld};
}

/* --- model ----------------------------------------------------------------------------------------------------- */

/* X and Y come once, if three columns of each stay until they are needed again, and for each thread as much as it has of a
 * column on either side; else each column comes three times.  Half of the cache: what is written passes through it as well.
 * Lines lost to conflicts are not in the model. */
static pl_work work(const pl_case *c)
{
    const double points = (double)(inner(c) * inner(c));
    pl_work w = {.load_bytes = 18 * 8 * points, .store_bytes = 4 * 8 * points, .flops = 47 * points,
                 .source = "model: 18 loads and 4 stores of 8 bytes per point (anderson1997, section 3.1.3)"};
    if (c->level == 1 || points == 0)
        return w;
    const size_t columns = 2 * 3 * layout_of(c).ld * sizeof(double);
    const bool stay = columns <= pl_cache_below(c) / 2;
    double fetched = stay ? points : 3 * points;
    for (int thread = 0; thread < c->threads && stay; thread++) {
        const pl_range part = points_of(c, thread, c->threads);
        fetched += 2 * fmin((double)(part.end - part.begin), (double)inner(c));
    }
    w.fetched_bytes = 2 * 8 * fetched * (double)c->n / (double)inner(c);    /* whole columns */
    w.written_bytes = w.store_bytes;
    w.source = stay ? "model: three columns of X and Y stay in the cache below: 2 loads and 4 stores of 8 bytes per point"
                    : "model: three columns of X and Y do not stay in the cache below: 6 loads and 4 stores of 8 bytes per point";
    return w;
}

/* --- verification ------------------------------------------------------------------------------------------------ */

static void poison(const pl_case *c)
{
    arrays *a = c->data;
    memset(a->array[AA], 0xFF, (a->at.begin[ARRAYS] - a->at.begin[AA]) * sizeof(double));   /* what lies between as well */
}

typedef struct { int v[3][3]; } patch;      /* nine neighbours: [di][dj] */

static int weighted(const patch *p, const int w[3][3])
{
    int sum = 0;
    for (int di = 0; di < 3; di++)
        for (int dj = 0; dj < 3; dj++)
            sum += w[di][dj] * p->v[di][dj];
    return sum;
}

/* Organised otherwise than the loop: whole numbers, tables of weights, the divisions by 4 and 8 at the end. */
static void expect(size_t i, size_t j, double *of)
{
    static const int d_i[3][3] = {{0, -1, 0}, {0, 0, 0}, {0, 1, 0}}, d_j[3][3] = {{0, 0, 0}, {-1, 0, 1}, {0, 0, 0}},
                     d_ii[3][3] = {{0, 1, 0}, {0, -2, 0}, {0, 1, 0}}, d_jj[3][3] = {{0, 0, 0}, {1, -2, 1}, {0, 0, 0}},
                     d_ij[3][3] = {{1, 0, -1}, {0, 0, 0}, {-1, 0, 1}};
    patch x, y;
    for (size_t di = 0; di < 3; di++)
        for (size_t dj = 0; dj < 3; dj++) {
            x.v[di][dj] = x_of(i + di - 1, j + dj - 1);
            y.v[di][dj] = y_of(i + di - 1, j + dj - 1);
        }
    const int xi = weighted(&x, d_i), yi = weighted(&y, d_i), xj = weighted(&x, d_j), yj = weighted(&y, d_j);
    const int four_a = xj * xj + yj * yj, four_b = xi * xi + yi * yi, eight_c = xi * xj + yi * yj;
    of[AA] = four_b / -4.0;
    of[DD] = four_b * (4 + four_a * NINEPOINT_REL) / 16;
    of[RX] = (2 * four_a * weighted(&x, d_ii) + 2 * four_b * weighted(&x, d_jj) - eight_c * weighted(&x, d_ij)) / 8.0;
    of[RY] = (2 * four_a * weighted(&y, d_ii) + 2 * four_b * weighted(&y, d_jj) - eight_c * weighted(&y, d_ij)) / 8.0;
}

/* Every interior point is right; boundary, padding, what lies between the arrays, and the guards are as they were. */
static double verify(const pl_case *c)
{
    const arrays *a = c->data;
    const size_t n = c->n, ld = a->at.ld;
    double worst = 0;
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < ld; i++) {
            const size_t at = j * ld + i;
            const bool inner = i > 0 && j > 0 && i + 1 < n && j + 1 < n;
            double right[ARRAYS] = {0};
            if (i < n && (a->array[X][at] != x_of(i, j) || a->array[Y][at] != y_of(i, j)))
                worst = INFINITY;
            if (inner)
                expect(i, j, right);
            for (int k = AA; k < ARRAYS; k++) {
                const double error = inner ? fabs(a->array[k][at] - right[k]) : pl_untouched(&a->array[k][at]) ? 0 : INFINITY;
                if (isnan(error))
                    return error;
                worst = pl_worse(worst, error);
            }
        }
    for (int k = AA; k < ARRAYS; k++)
        for (size_t at = n * ld; at < a->at.begin[k + 1] - a->at.begin[k]; at++)
            if (!pl_untouched(&a->array[k][at]))
                worst = INFINITY;
    return worst;
}

static const pl_kernel ninepoint = {
    .name = "ninepoint", .title = "Finite differences with two nine-point stencils", .variants = variants, .check = check,
    .footprint = footprint, .create = create, .touch = touch, .plan = plan, .run = run, .work = work,
    .verify = verify, .poison = poison, .buffers = pl_first_buffers, .destroy = pl_first_buffers_destroy, .facts = facts,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &ninepoint); }
