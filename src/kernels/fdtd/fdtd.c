/* The FDTD loop as the runtime sees it: its table of variants, its data, its model, its verification. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

#define C(function, flags_) .loop = (pl_loop)function, .flags = flags_

static const pl_variant variants[] = {
    {"fused", C(fdtd_fused, FDTD_C_FLAGS), .about = "one loop, three statements, as written: the arrays may overlap"},
    {"fused_restrict", C(fdtd_fused_restrict, FDTD_C_FLAGS), .about = "fused, told that the arrays do not overlap"},
    {"fused_prefetch", C(fdtd_fused_prefetch, FDTD_C_FLAGS), .about = "fused_restrict, software prefetch"},
    {"split2", C(fdtd_split2, FDTD_C_FLAGS), .about = "two loops, {ex, ey} and {ez}, as written"},
    {"split2_restrict", C(fdtd_split2_restrict, FDTD_C_FLAGS), .about = "split2, no overlap"},
    {"split3", C(fdtd_split3, FDTD_C_FLAGS), .about = "three loops, as written"},
    {"split3_restrict", C(fdtd_split3_restrict, FDTD_C_FLAGS), .about = "split3, no overlap"},
#ifdef FDTD_C_DISTRIBUTED
    {"distributed", C(fdtd_distributed, FDTD_C_DISTRIBUTED), .about = "fused, split by the compiler if it sees fit"},
    {"distributed_restrict", C(fdtd_distributed_restrict, FDTD_C_DISTRIBUTED), .about = "distributed, no overlap"},
#else
    {"distributed", .about = "this C compiler has no loop distribution that can be asked for"},
    {"distributed_restrict", .about = "this C compiler has no loop distribution that can be asked for"},
#endif
    PL_IN_FORTRAN("fortran_fused", FDTD_FORTRAN_FLAGS, fdtd_fortran_fused, .about = "fused, in Fortran: no overlap by its rules")
    PL_IN_FORTRAN("fortran_split2", FDTD_FORTRAN_FLAGS, fdtd_fortran_split2, .about = "split2, in Fortran")
    PL_IN_FORTRAN("fortran_split3", FDTD_FORTRAN_FLAGS, fdtd_fortran_split3, .about = "split3, in Fortran")
#if defined(PL_FORTRAN) && !defined(FDTD_FORTRAN_DISTRIBUTED)
    {"fortran_distributed", .about = "this Fortran compiler has no loop distribution that can be asked for"},
#else
    PL_IN_FORTRAN("fortran_distributed", FDTD_FORTRAN_DISTRIBUTED, fdtd_fortran_distributed, .about = "distributed, in Fortran")
#endif
    {0},
};

enum { DISTANCE };

static const pl_parameter parameters[] = {
    [DISTANCE] = {"distance", 384, 16, "prefetch distance in elements"},
    {0},
};

/* --- the grid ---------------------------------------------------------------------------------------------------- */

/* --size n: arrays of n x n x (n - 1), of which 2 .. n - 2 in each direction (counted from 1) is computed: n = 129 is the
 * source's.  Fewer than four leave nothing to compute. */
enum { EX, EY, EZ, HX, HY, HZ, FIELDS, MOST = 100000 };

static size_t planes(const pl_case *c) { return c->n > 1 ? c->n - 1 : 1; }
static size_t inner(const pl_case *c) { return c->n > 3 ? c->n - 3 : 0; }
static size_t array_bytes(const pl_case *c) { return c->n * c->n * planes(c) * sizeof(float); }
static size_t footprint(const pl_case *c) { return FIELDS * array_bytes(c); }

static void check(const pl_case *c)
{
    if (c->n > MOST)
        pl_fail("--size %zu: is the edge of a cube of points: give at most %d; 129 is the source's", c->n, MOST);
}

/* Each array begins 11 lines further into its page than the one before: at the same offset, all nine streams of the loop
 * would compete for the same sets of the first-level cache, and loads would seem to depend on stores 4096 bytes off. */
static void *create(const pl_case *c)
{
    size_t bytes[FIELDS], offset[FIELDS];
    for (size_t field = 0; field < FIELDS; field++) {
        bytes[field] = array_bytes(c);
        offset[field] = field * 11 * PL_LINE;
    }
    return pl_buffers_create(c, FIELDS, bytes, offset);
}

/* Different powers of two: products are exact, fused with the sum or not. */
static const fdtd_coefficients coefficients = {
    .caex = 0.5F, .cbex = 1, .caey = 0.25F, .cbey = 2, .caez = 0.125F, .cbez = 4,
};

/* Small whole numbers without a period, so that a pass is exact in single precision and all variants agree bit for bit.
 *
 * H: which of k and j are odd decides whether hx is odd, k alone whether hy is; hz is even.  So all three sums of four in
 * the loop are odd, hence never zero: however many passes, E tends to a value of ordinary size, and never to denormals, which
 * would take their time.  E: multiples of 8, so that one pass changes every point (an odd number does not cancel), and no
 * point that a loop has left out looks right. */
static void initial_row(int field, size_t n, unsigned i, unsigned j, float *row)
{
    const unsigned of_row = pl_mix((uint64_t)field << 40 | (uint64_t)j << 20 | i), end = (unsigned)n;
    const unsigned mask = field < HX ? 15 * 8 : 63 * 2, odd = field == HX || field == HY, shift = field == HX ? j : 0;
    for (unsigned k = 0; k < end; k++)
        row[k] = (float)(int)(((pl_mix(k) ^ of_row) & mask) | ((k + shift) & odd));
}

static float *row_of(const pl_case *c, int field, size_t i, size_t j)
{
    const pl_buffers *x = c->data;
    return (float *)x->at[field] + (j * c->n + i) * c->n;
}

/* Rows as they lie: n of each plane, one plane after the other. */
static void touch_rows(const pl_case *c, int fields, size_t first, size_t last)
{
    for (int field = 0; field < fields; field++)
        for (size_t row = first; row < last; row++)
            initial_row(field, c->n, (unsigned)(row % c->n), (unsigned)(row / c->n), row_of(c, field, row % c->n, row / c->n));
}

/* Of the source's parallel loop over planes and the one over rows within it: planes alone are too few for many threads. */
static pl_range rows_of(const pl_case *c, int thread, int threads)
{
    return pl_narrow(c, pl_part(inner(c) * inner(c), thread, threads));
}

/* The rows of the boundary go with those beside them. */
static void touch(const pl_case *c, int thread, int threads)
{
    const size_t m = inner(c), rows = c->n * planes(c);
    const pl_range part = rows_of(c, thread, threads);
    const size_t first = m ? (part.begin / m + 1) * c->n + part.begin % m + 1 : 0;
    const size_t last = m ? (part.end / m + 1) * c->n + part.end % m + 1 : 0;
    touch_rows(c, FIELDS, thread ? first : 0, thread < threads - 1 ? last : rows);
}

static void plan(const pl_case *c, pl_plan *p)
{
    p->part = rows_of(c, p->thread, c->threads);
    p->pieces = pl_pieces(p->part, inner(c), p->piece);
}

static void run(const pl_case *c, const pl_plan *p)
{
    const pl_buffers *x = c->data;
    fdtd_coefficients own = coefficients;
    own.ahead = (size_t)c->parameters[DISTANCE];
    for (const pl_piece *piece = p->piece; piece < p->piece + p->pieces; piece++)
        ((fdtd_loop *)p->loop)(c->n, piece->outer.begin + 1, piece->outer.end + 1, piece->inner.begin + 1, piece->inner.end + 1,
                               &own, x->at[EX], x->at[EY], x->at[EZ], x->at[HX], x->at[HY], x->at[HZ]);
}

/* --- model ------------------------------------------------------------------------------------------------------- */

/* The same for all variants: of a row whatever two loops read is in L1.  Whole rows, since what lies between the computed
 * points of two rows is in the same lines.  HX and HZ of plane j - 1 come again unless all that is touched meanwhile, six
 * planes, stays in the cache below; half of it, since what is written passes through it as well. */
static pl_work work(const pl_case *c)
{
    const size_t edge = inner(c);
    const double m = (double)edge, points = m * m * m, row = (double)(c->n * sizeof(float));
    pl_work w = {.load_bytes = 15 * 4 * points, .store_bytes = 3 * 4 * points, .flops = 18 * points,
                 .source = "model: 15 loads and 3 stores of 4 bytes per point (anderson1997, section 3.2.3)"};
    if (c->level == 1 || !edge)
        return w;
    const bool stays = FIELDS * c->n * c->n * sizeof(float) <= pl_cache_below(c) / 2;
    double before = stays ? 0 : m * m, beside = m;      /* rows of planes j - 1, rows i - 1, that have not just been brought */
    for (int thread = 0; thread < c->threads; thread++) {
        const pl_range part = rows_of(c, thread, c->threads);
        before += stays ? fmin((double)(part.end - part.begin), m) : 0;
        beside += part.begin < part.end && part.begin % edge != 0;
    }
    const double h_rows = 3 * m * m + 2 * before + 2 * beside;     /* hx and hz, hy and hz */
    w.updated_bytes = 3 * m * m * row;
    w.fetched_bytes = w.updated_bytes + h_rows * row;
    w.source = stays ? "model: six planes stay in the cache below: 6 arrays come once, 3 are written back"
                     : "model: six planes do not stay in the cache below: hx and hz come twice, 3 arrays are written back";
    return w;
}

/* --- verification ------------------------------------------------------------------------------------------------ */

static void poison(const pl_case *c)
{
    touch_rows(c, HX, 0, c->n * planes(c));     /* EX, EY, EZ as they were before the first pass */
}

enum { BESIDE = FIELDS, BELOW, ROWS };     /* rows i - 1 and j - 1 of the field of H that it takes */

/* What a row of a field must hold after a pass, which does not change H: from the index alone, in double precision.
 * `at` are ROWS rows of room. */
static void expected_row(int field, size_t n, unsigned i, unsigned j, bool computed, float *at[ROWS])
{
    initial_row(field, n, i, j, at[field]);
    if (!computed || field >= HX)
        return;
    float *const e = at[field], *const hx = at[HX], *const hy = at[HY], *const hz = at[HZ], *const beside = at[BESIDE],
                 *const below = at[BELOW];
    initial_row(HX, n, i, j, hx);
    initial_row(HY, n, i, j, hy);
    initial_row(HZ, n, i, j, hz);
    initial_row(field == EZ ? HY : HZ, n, i - 1, j, beside);
    initial_row(field == EZ ? HX : HZ, n, i, j - 1, below);
    const double part = field == EX ? 2 : field == EY ? 4 : 8;
    for (size_t k = 1; k < n - 2; k++) {
        const double change = field == EX   ? hz[k] - below[k] + hy[k] - hy[k - 1]
                              : field == EY ? -2 * (hx[k] - hx[k - 1] + hz[k] - beside[k])
                                            : 4 * (hy[k] - beside[k] - hx[k] + below[k]);
        e[k] = (float)((e[k] + change) / part);
    }
}

static double worst_of(size_t n, const float *row, const float *right)
{
    double worst = 0;
    for (size_t k = 0; k < n && !isnan(worst); k++)
        worst = pl_worse(worst, fabs((double)row[k] - (double)right[k]));
    return worst;
}

/* All of all arrays: what must not be written, H and the boundary of E, is compared as well. */
static double verify(const pl_case *c)
{
    const size_t n = c->n, last = 1 + inner(c);
    double worst = 0;
    float *const room = pl_allocate(ROWS * n * sizeof *room, "the expected rows"), *at[ROWS];
    for (size_t r = 0; r < ROWS; r++)
        at[r] = room + r * n;
    for (int field = 0; field < FIELDS && !isnan(worst); field++)
        for (size_t j = 0; j < planes(c) && !isnan(worst); j++)
            for (size_t i = 0; i < n && !isnan(worst); i++) {
                const bool computed = i >= 1 && i < last && j >= 1 && j < last;
                const float *const row = row_of(c, field, i, j);
                expected_row(field, n, (unsigned)i, (unsigned)j, computed, at);
                if (memcmp(row, at[field], n * sizeof *row))        /* no zero of E is computed: none has a sign */
                    worst = pl_worse(worst, worst_of(n, row, at[field]));
            }
    free(room);
    return worst;
}

static const pl_kernel fdtd = {
    .name = "fdtd", .title = "FDTD, update of the electric field: fused, split, and what the compiler may assume",
    .variants = variants, .parameters = parameters, .check = check, .footprint = footprint, .create = create, .touch = touch,
    .plan = plan, .narrows = true, .run = run, .work = work, .verify = verify, .poison = poison,
    .buffers = pl_data_buffers, .destroy = pl_buffers_destroy,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &fdtd); }
