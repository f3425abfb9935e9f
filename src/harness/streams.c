/* The limit streams as a kernel: the machine's own best at the level where the working set lives.
 *
 * All streams work on the same four quarters of one working set, each thread on its part of every quarter, so that the
 * placement of the pages suits all of them: load reads all four; store writes all four; update reads and writes all four;
 * copy reads two and writes two; triad reads three and writes one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "streams.h"

/* Places of each quarter that load_many reads by turns: 20 in all, as a lattice Boltzmann step has 19. */
enum { EACH = 5 };

double pl_load_plain(size_t lines, double *a, double *b, double *c, double *d)
{
    double s[8] = {0};
    for (size_t i = 0; i < 8 * lines; i += 8)
        for (int k = 0; k < 8; k++)
            s[k] += (a[i + k] + b[i + k]) + (c[i + k] + d[i + k]);
    return (s[0] + s[1]) + (s[2] + s[3]) + (s[4] + s[5]) + (s[6] + s[7]);
}

double pl_load_many(size_t lines, double *a, double *b, double *c, double *d)
{
    const size_t apart = 8 * (lines / EACH);
    double s[8] = {0};
    for (size_t i = 0; i < apart; i += 8)
        for (size_t at = i; at < EACH * apart; at += apart)
            for (int k = 0; k < 8; k++)
                s[k] += (a[at + k] + b[at + k]) + (c[at + k] + d[at + k]);
    for (size_t i = EACH * apart; i < 8 * lines; i += 8)
        for (int k = 0; k < 8; k++)
            s[k] += (a[i + k] + b[i + k]) + (c[i + k] + d[i + k]);
    return (s[0] + s[1]) + (s[2] + s[3]) + (s[4] + s[5]) + (s[6] + s[7]);
}

double pl_store_plain(size_t lines, double *a, double *b, double *c, double *d)
{
    double *const part[] = {a, b, c, d};
    for (int q = 0; q < 4; q++)
        for (size_t i = 0; i < 8 * lines; i++)
            part[q][i] = 1;     /* built without loop patterns: no memset (src/cmake/flags.cmake) */
    return 0;
}

double pl_update_plain(size_t lines, double *a, double *b, double *c, double *d)
{
    double *const part[] = {a, b, c, d};
    for (int q = 0; q < 4; q++)
        for (size_t i = 0; i < 8 * lines; i++)
            part[q][i] = -part[q][i];
    return 0;
}

double pl_copy_plain(size_t lines, double *restrict a, double *restrict b, double *restrict c, double *restrict d)
{
    for (size_t i = 0; i < 8 * lines; i++) {
        c[i] = a[i];
        d[i] = b[i];
    }
    return 0;
}

double pl_triad_plain(size_t lines, double *restrict a, double *restrict b, double *restrict c, double *restrict d)
{
    for (size_t i = 0; i < 8 * lines; i++)
        a[i] = b[i] + c[i] * d[i];
    return 0;
}

#define STREAM(function, instructions, bypass, text) \
    .loop = (pl_loop)function, .isa = instructions, .nontemporal = bypass, .about = text

/* The streams of one width. */
#define STREAMS(width, instructions, bits) \
    {"load_" #width, STREAM(pl_load_##width, instructions, false, bits "-bit loads")}, \
    {"store_" #width, STREAM(pl_store_##width, instructions, false, bits "-bit stores")}, \
    {"update_" #width, STREAM(pl_update_##width, instructions, false, bits "-bit loads and stores of the same elements")}, \
    {"copy_" #width, STREAM(pl_copy_##width, instructions, false, bits "-bit copy")}, \
    {"triad_" #width, STREAM(pl_triad_##width, instructions, false, bits "-bit triad")}, \
    {"store_nt_" #width, STREAM(pl_store_nt_##width, instructions, true, bits "-bit non-temporal stores")}, \
    {"copy_nt_" #width, STREAM(pl_copy_nt_##width, instructions, true, bits "-bit copy, non-temporal stores")}, \
    {"triad_nt_" #width, STREAM(pl_triad_nt_##width, instructions, true, bits "-bit triad, non-temporal stores")}

static const pl_variant variants[] = {
#if defined(__x86_64__)
    STREAMS(avx512, "avx512f", "512"),
    STREAMS(avx2, "avx2", "256"),
#endif
    {"load", STREAM(pl_load_plain, NULL, false, "loads as the compiler makes them")},
    {"load_many", STREAM(pl_load_many, NULL, false, "loads of a line from each of 20 places by turns, as the compiler makes them")},
    {"store", STREAM(pl_store_plain, NULL, false, "stores as the compiler makes them")},
    {"update", STREAM(pl_update_plain, NULL, false, "update as the compiler makes it")},
    {"copy", STREAM(pl_copy_plain, NULL, false, "copy as the compiler makes it")},
    {"triad", STREAM(pl_triad_plain, NULL, false, "triad as the compiler makes it")},
    {0},
};

/* --- data --------------------------------------------------------------------------------------------------- */

typedef struct {
    double *quarter[4];
    size_t lines;           /* of each quarter */
    size_t mapped;
    pl_result *sums;        /* of each thread's last pass */
} arena;

static size_t lines_of(const pl_case *c)
{
    return c->n < 32 ? 1 : c->n / 32;   /* whatever the threads: cases that differ in them share their data */
}

static size_t footprint(const pl_case *c) { return 4 * PL_LINE * lines_of(c); }

static void *create(const pl_case *c)
{
    arena *s = pl_allocate(sizeof *s, "the limit streams");
    s->lines = lines_of(c);
    s->mapped = 4 * PL_LINE * s->lines;
    s->quarter[0] = pl_map(s->mapped, c->pages);
    if (!s->quarter[0])
        pl_no_memory(c);
    s->sums = pl_results_create();
    for (int q = 1; q < 4; q++)
        s->quarter[q] = s->quarter[q - 1] + 8 * s->lines;
    return s;
}

static void destroy(void *data)
{
    arena *s = data;
    pl_unmap(s->quarter[0], s->mapped);
    free(s->sums);
    free(s);
}

/* Odd, of 9 bits, and without a period: the four quarters have a byte each of the bits of i. */
static double value(uint32_t bits_of_i, int quarter) { return (double)((int)(bits_of_i >> 8 * quarter & 255) * 2 - 255); }

static void touch(const pl_case *c, int thread, int threads)
{
    const arena *s = c->data;
    const pl_range part = pl_part(s->lines, thread, threads);
    for (size_t i = 8 * part.begin; i < 8 * part.end; i++) {
        const uint32_t bits = pl_mix(i);
        for (int q = 0; q < 4; q++)
            s->quarter[q][i] = value(bits, q);
    }
}

static void plan(const pl_case *c, pl_plan *p)
{
    const arena *s = c->data;
    p->part = pl_part(s->lines, p->thread, c->threads);
    for (int q = 0; q < 4; q++)
        p->at[q] = s->quarter[q] + 8 * p->part.begin;
}

static void run(const pl_case *c, const pl_plan *p)
{
    ((const arena *)c->data)->sums[p->thread].value =
        ((pl_stream *)p->loop)(p->part.end - p->part.begin, p->at[0], p->at[1], p->at[2], p->at[3]);
}

static int kind(const pl_case *c) { return c->variant->name[0]; }    /* l, s, u, c, t */

static pl_work work(const pl_case *c)
{
    const double quarter = (double)PL_LINE * (double)lines_of(c);
    switch (kind(c)) {
    case 'l':
        return (pl_work){.load_bytes = 4 * quarter, .flops = 4 * quarter / 8, .source = "8 bytes loaded per element",
                         .places = c->variant->loop == (pl_loop)pl_load_many ? 4 * EACH : 4};
    case 's':
        return (pl_work){.store_bytes = 4 * quarter, .source = "8 bytes stored per element"};
    case 'u':       /* the lines are there when they are stored: no write-allocate, whatever the processor does */
        return (pl_work){.load_bytes = 4 * quarter, .store_bytes = 4 * quarter, .flops = 4 * quarter / 8,
                         .fetched_bytes = 4 * quarter, .updated_bytes = 4 * quarter,
                         .source = "8 bytes loaded and the same 8 stored per element"};
    case 'c':
        return (pl_work){.load_bytes = 2 * quarter, .store_bytes = 2 * quarter, .source = "8 bytes loaded and 8 stored per element"};
    default:
        return (pl_work){.load_bytes = 3 * quarter, .store_bytes = quarter, .flops = 2 * quarter / 8,
                         .source = "24 bytes loaded and 8 stored per iteration"};
    }
}

static void poison(const pl_case *c)
{
    const arena *s = c->data;
    if (kind(c) == 's')
        for (int q = 0; q < 4; q++)
            memset(s->quarter[q], 0xFF, PL_LINE * s->lines);
    if (kind(c) == 'c')
        memset(s->quarter[2], 0xFF, 2 * PL_LINE * s->lines);
    if (kind(c) == 't')
        memset(s->quarter[0], 0xFF, PL_LINE * s->lines);
    pl_results_poison(s->sums);
}

static inline double expected(int of, uint32_t bits, int q)
{
    if (of == 's')
        return 1;
    if (of == 'u')
        return -value(bits, q);
    if (of == 'c')
        return value(bits, q % 2);
    return q == 0 && of == 't' ? value(bits, 1) + value(bits, 2) * value(bits, 3) : value(bits, q);
}

/* Whether anything is wrong, which compilers vectorise: as fast as a stream. */
static inline bool any_wrong(const arena *s, int of, size_t begin, size_t end)
{
    const double *const a = s->quarter[0], *const b = s->quarter[1], *const c = s->quarter[2], *const d = s->quarter[3];
    int wrong = 0;
    for (size_t i = begin; i < end; i++) {
        const uint32_t bits = pl_mix(i);
        wrong |= (a[i] != expected(of, bits, 0)) | (b[i] != expected(of, bits, 1)) | (c[i] != expected(of, bits, 2)) |
                 (d[i] != expected(of, bits, 3));
    }
    return wrong;
}

static bool any_wrong_of(const pl_case *c, size_t begin, size_t end)
{
    switch (kind(c)) {
    case 's': return any_wrong(c->data, 's', begin, end);
    case 'u': return any_wrong(c->data, 'u', begin, end);
    case 'c': return any_wrong(c->data, 'c', begin, end);
    case 't': return any_wrong(c->data, 't', begin, end);
    default: return any_wrong(c->data, 'l', begin, end);
    }
}

static double largest_error(const pl_case *c, size_t begin, size_t end)
{
    double worst = 0;
    for (size_t i = begin; i < end; i++)
        for (int q = 0; q < 4; q++)
            worst = pl_worse(worst, fabs(((const arena *)c->data)->quarter[q][i] - expected(kind(c), pl_mix(i), q)));
    return worst;
}

static double sum_of(size_t begin, size_t end)
{
    int64_t sum = 0;
    for (size_t i = begin; i < end; i++) {
        const uint32_t bits = pl_mix(i);
        sum += (int)(2 * ((bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24))) - 4 * 255;
    }
    return (double)sum;
}

/* A thread's part of the quarters, and the sum that it has of it, all from the index. */
static double verify_part(const pl_case *c, int thread)
{
    const arena *s = c->data;
    const pl_range part = pl_part(s->lines, thread, c->threads);
    const size_t begin = 8 * part.begin, end = 8 * part.end;
    const double worst = any_wrong_of(c, begin, end) ? largest_error(c, begin, end) : 0;
    return pl_worse(worst, kind(c) == 'l' ? fabs(s->sums[thread].value - sum_of(begin, end)) : 0);
}

static const void *where(const pl_case *c, size_t *bytes)
{
    const arena *s = c->data;
    *bytes = s->mapped;
    return s->quarter[0];
}

const pl_kernel pl_streams = {
    .name = "streams", .title = "Limit streams: load, store, update, copy, triad", .variants = variants,
    .footprint = footprint, .create = create, .touch = touch, .plan = plan, .run = run, .work = work, .verify_part = verify_part,
    .refresh = true, .poison = poison, .where = where, .destroy = destroy, .private_lines = true,
};
