/* The transpose as the runtime sees it: its table of variants, its data, its model, its verification. */
#include <math.h>
#include <string.h>

#include "kernel.h"

#ifdef PL_OPENBLAS
#include <cblas.h>
#endif

enum { PADDED = 1 };    /* layout */

static const pl_variant variants[] = {
    {"rows", PL_LOOP(transpose_rows), .about = "along the rows of A: reads contiguous, writes a row apart"},
    {"columns", PL_LOOP(transpose_columns), .about = "along the rows of B: writes contiguous, reads a row apart"},
    {"diagonals", PL_LOOP(transpose_diagonals), .about = "along the diagonals: a row and an element apart"},
    {"padded", .layout = PADDED, PL_LOOP(transpose_rows), .about = "rows, which lie an odd number of cache lines apart"},
    {"blocked", PL_LOOP(transpose_blocked), .about = "rows, a strip of --block-size columns at a time"},
    PL_WIDEST_AVX("blocked_simd", transpose_blocked_simd, .about = "blocked, 8 x 8 (AVX2: 8 x 4) transposed in registers")
    PL_WIDEST_AVX("blocked_nt", transpose_blocked_nt, .nontemporal = true, .about = "blocked_simd, non-temporal stores of whole lines")
    PL_AVX2("blocked_simd_avx2", transpose_blocked_simd, .about = "256 bits also where there are 512")
    PL_AVX2("blocked_nt_avx2", transpose_blocked_nt, .nontemporal = true, .about = "256 bits also where there are 512")
#ifdef PL_OPENBLAS
    {"openblas", PL_LOOP(transpose_openblas), .about = "yardstick: the library's domatcopy, dimatcopy in place"},
#else
    {"openblas", .about = "built without OpenBLAS, or it has threads of its own"},
#endif
    {"memcpy", .nontemporal = true, PL_LOOP(transpose_memcpy), .about = "yardstick: the C library's copy of the same bytes, no transpose"},
    {0},
};

typedef enum { STRIPS, ROWS, COLUMNS, DIAGONALS, LIBRARY, COPY } order;

/* In which order a variant's loop goes, and what does the same in place. */
static const struct walk {
    transpose_loop *loop;
    order order;
    transpose_in_place *in_place;   /* NULL: needs a second matrix */
    int most_threads;               /* in place; 0: any number */
} walks[] = {
    {transpose_rows, .order = ROWS, .in_place = transpose_in_place_rows},
    {transpose_columns, .order = COLUMNS},
    {transpose_diagonals, .order = DIAGONALS},
    {transpose_blocked, .order = STRIPS, .in_place = transpose_in_place_blocked},
#ifdef PL_OPENBLAS
    {transpose_openblas, .order = LIBRARY, .in_place = transpose_in_place_openblas, .most_threads = 1},
#endif
    {transpose_memcpy, .order = COPY},
    {0},        /* STRIPS by intrinsics */
};

static const struct walk *walk_of(const pl_case *c)
{
    const struct walk *w = walks;
    while (w->loop && (pl_loop)w->loop != c->variant->loop)
        w++;
    return w;
}

static bool goes(const pl_case *c, order by) { return walk_of(c)->order == by; }

enum { PLACE, BLOCK };
enum { OUT, IN };
static const char *const places[] = {"out", "in", NULL};

static const pl_parameter parameters[] = {
    [PLACE] = {"place", OUT, 1, "another matrix, or the same", .words = places, .of_data = true},
    [BLOCK] = {"block-size", 0, TRANSPOSE_LINE, "columns of a blocked variant's strip; 0: from cache and TLB",
               .most = TRANSPOSE_LONGEST},
    {0},
};

/* --- data ------------------------------------------------------------------------------------------------------ */

enum { MOST = 1 << 24 };    /* the bytes of two matrices can still be counted */

static bool is_in_place(const pl_case *c) { return c->parameters[PLACE] == IN; }

static size_t leading(const pl_case *c)
{
    return c->variant->layout == PADDED ? ((c->n + TRANSPOSE_LINE - 1) / TRANSPOSE_LINE | 1) * TRANSPOSE_LINE : c->n;
}

static size_t matrix_bytes(const pl_case *c) { return c->n * leading(c) * sizeof(double); }

static size_t footprint(const pl_case *c) { return (is_in_place(c) ? 1 : 2) * matrix_bytes(c); }

static void *create(const pl_case *c)
{
    const size_t bytes[] = {matrix_bytes(c), matrix_bytes(c)};
    return pl_buffers_create(c, is_in_place(c) ? 1 : 2, bytes, NULL);
}

static double *matrix_a(const pl_case *c) { return ((const pl_buffers *)c->data)->at[0]; }
static double *matrix_b(const pl_case *c) { return ((const pl_buffers *)c->data)->at[1]; }

static size_t lines_of(const pl_case *c) { return (c->n + TRANSPOSE_LINE - 1) / TRANSPOSE_LINE; }

/* Where a thread's part begins: a tile of TRANSPOSE_LINE x TRANSPOSE_LINE elements, numbered row by row, so that two threads
 * never write into one tile.  As many elements before it as are due, of the whole matrix, or of the triangle below its
 * diagonal; bands of whole rows of tiles would be too few for many threads. */
static size_t first_tile(const pl_case *c, int thread, int threads, bool triangle)
{
    const double n = (double)c->n, tile = TRANSPOSE_LINE, due = (triangle ? n * (n - 1) / 2 : n * n) * thread / threads;
    const double row = floor((triangle ? (1 + sqrt(1 + 8 * due)) / 2 : due / n) / tile), first = tile * row;
    const double before = triangle ? first * (first - 1) / 2 : first * n, height = fmin(tile, n - first);
    const size_t lines = lines_of(c), column = thread == threads ? lines : (size_t)round((due - before) / (height * tile));
    return thread == threads ? lines * lines : (size_t)row * lines + (column < lines ? column : lines);
}

/* A thread's part in elements; whoever takes the triangle leaves out what lies above the diagonal. */
static int pieces_of(const pl_case *c, int thread, int threads, bool triangle, pl_piece piece[PL_PIECES])
{
    const pl_range tiles = {first_tile(c, thread, threads, triangle), first_tile(c, thread + 1, threads, triangle)};
    const int pieces = pl_pieces(tiles, lines_of(c), piece);
    for (int i = 0; i < pieces; i++) {
        size_t *const bounds[] = {&piece[i].outer.begin, &piece[i].outer.end, &piece[i].inner.begin, &piece[i].inner.end};
        for (int k = 0; k < 4; k++)
            *bounds[k] = *bounds[k] * TRANSPOSE_LINE < c->n ? *bounds[k] * TRANSPOSE_LINE : c->n;
    }
    return pieces;
}

static double share(const pl_case *c, int thread)
{
    pl_piece piece[PL_PIECES];
    const pl_range elements = pl_part(c->n * c->n, thread, c->threads);
    if (goes(c, DIAGONALS))
        return (double)(elements.end - elements.begin);
    double sum = 0;
    for (int k = pieces_of(c, thread, c->threads, is_in_place(c), piece) - 1; k >= 0; k--)
        for (size_t i = piece[k].outer.begin; i < piece[k].outer.end; i++) {
            const size_t end = is_in_place(c) && i < piece[k].inner.end ? i : piece[k].inner.end;
            sum += end > piece[k].inner.begin ? (double)(end - piece[k].inner.begin) : 0;
        }
    return sum;
}

/* Every element has a value of its own. */
static double value(const pl_case *c, size_t i, size_t j) { return (double)(i * c->n + j); }

static void fill(const pl_case *c, const pl_piece *part)
{
    for (size_t i = part->outer.begin; i < part->outer.end; i++)
        for (size_t j = part->inner.begin; j < part->inner.end; j++)
            matrix_a(c)[i * leading(c) + j] = value(c, i, j);
}

/* Of both matrices the same part; what pads the rows, too. */
static void touch(const pl_case *c, int thread, int threads)
{
    pl_piece piece[PL_PIECES];
    const int pieces = pieces_of(c, thread, threads, false, piece);
    for (int k = 0; k < pieces; k++) {
        const size_t begin = piece[k].inner.begin, end = piece[k].inner.end < c->n ? piece[k].inner.end : leading(c);
        for (size_t i = piece[k].outer.begin; i < piece[k].outer.end; i++) {
            memset(matrix_a(c) + i * leading(c) + begin, 0, (end - begin) * sizeof(double));
            if (!is_in_place(c))
                memset(matrix_b(c) + i * leading(c) + begin, 0, (end - begin) * sizeof(double));
        }
        fill(c, &piece[k]);
    }
}

/* --- the strip of the blocked variants ------------------------------------------------------------------------- */

/* The entries of the data TLB, first level (byna2003, section 6, names the same number) and second: no processor at hand
 * has fewer. */
enum { TLB1 = 64, TLB2 = 512, SMALLEST_L1 = 32768, PAGE = 4096 };

/* How many lines a row apart an L1 keeps whose ways are a page each: all, or fewer if they fall into a few of its sets. */
static size_t lines_kept(const pl_case *c)
{
    const size_t share = pl_cache_share(c, 1), ways = (share ? share : SMALLEST_L1) / PAGE;
    size_t between = PL_LINE;       /* largest power of two that divides the distance of two rows */
    while (between < PAGE && leading(c) * sizeof(double) % (2 * between) == 0)
        between *= 2;
    return ways * (PAGE / between);
}

/* A strip needs a page of B, and a line, for each of its columns.  As many columns as there are pages in the TLB, its
 * second level where lines are written past the caches; twice as many where rows are not whole lines: then those at the
 * ends of a strip are fetched twice, and half as many ends pay.  Lines that are not written past the caches: no more than
 * the L1 keeps. */
static size_t block_of(const pl_case *c)
{
    if (c->parameters[BLOCK])
        return (size_t)c->parameters[BLOCK];
    const size_t pages = c->variant->nontemporal ? TLB2 : TLB1;
    size_t most = transpose_whole_lines(c->n, leading(c), NULL) ? pages : 2 * pages, block = TRANSPOSE_LINE;
    if (!c->variant->nontemporal && lines_kept(c) < most)
        most = lines_kept(c);
    while (2 * block <= most)
        block *= 2;
    return block;
}

static void facts(const pl_case *c, pl_fact *found)
{
    if (goes(c, STRIPS))
        *found++ = (pl_fact){"block", NULL, (double)block_of(c)};
#ifdef PL_OPENBLAS
    if (goes(c, LIBRARY))
        *found++ = (pl_fact){"library", openblas_get_config(), 0};
#endif
}

/* --- the work -------------------------------------------------------------------------------------------------- */

static void check(const pl_case *c)
{
    if (c->n > MOST)
        pl_fail("--size %zu: this is the dimension of a square matrix: give at most %d", c->n, MOST);
    if (!is_in_place(c))
        return;
    const struct walk *const w = walk_of(c);
    if (!w->in_place)
        pl_fail("--place in: %s needs a second matrix: give rows, padded, blocked or openblas", c->variant->name);
    if (w->most_threads && c->threads > w->most_threads)
        pl_fail("--threads %d: %s in place runs with at most %d: leave it out", c->threads, c->variant->name, w->most_threads);
}

/* One pass over a piece: the loop of a band, on the part of the matrices that the piece cuts out of it. */
static void run_piece(const pl_case *c, const pl_piece *part, size_t block)
{
    transpose_loop *const loop = (transpose_loop *)c->variant->loop;
    const size_t ld = leading(c), first = part->inner.begin, length = part->inner.end - first;
    if (is_in_place(c))
        walk_of(c)->in_place(c->n, ld, matrix_a(c), part, block);
    else if (goes(c, COPY))
        loop(length, ld, matrix_a(c) + first, matrix_b(c) + first, part->outer, block);
    else if (goes(c, ROWS) || goes(c, LIBRARY))     /* the band is of A */
        loop(length, ld, matrix_a(c) + first, matrix_b(c) + first * ld, part->outer, block);
    else                                            /* of B */
        loop(length, ld, matrix_a(c) + first * ld, matrix_b(c) + first, part->outer, block);
}

static void plan(const pl_case *c, pl_plan *p)
{
    p->block = block_of(c);
    if (goes(c, DIAGONALS))
        p->part = pl_part(c->n * c->n, p->thread, c->threads);
    else
        p->pieces = pieces_of(c, p->thread, c->threads, is_in_place(c), p->piece);
}

static void run(const pl_case *c, const pl_plan *p)
{
    if (goes(c, DIAGONALS))
        ((transpose_loop *)p->loop)(c->n, leading(c), matrix_a(c), matrix_b(c), p->part, p->block);
    for (int k = 0; k < p->pieces; k++)
        run_piece(c, &p->piece[k], p->block);
}

/* Whether a cache between the processor and c->level keeps this many bytes for a thread. */
static bool is_kept(const pl_case *c, double bytes) { return bytes <= (double)pl_cache_below(c); }

/* Every line once, but for walks against the rows of a matrix: there the line of an element is used again after a whole
 * row or diagonal, and is fetched for each of its elements if that many lines do not stay in the cache below. */
static pl_work work(const pl_case *c)
{
    static const char once[] = "model: every line is read once and written once",
                      copy[] = "model: every line is read once and written once, and not fetched for it: what memcpy does is up to the C library",
                      walk[] = "model: a walk against the rows fetches the line of every element, unless a column of lines stays in cache",
                      inside[] = "model: every line is read once and written back once";
    const double bytes = 8 * (double)c->n * (double)c->n, column = PL_LINE * (double)c->n;
    const bool rows = goes(c, ROWS), columns = goes(c, COLUMNS), diagonals = goes(c, DIAGONALS);
    pl_work w = {.load_bytes = bytes, .store_bytes = bytes, .source = goes(c, COPY) ? copy : once};
    if (c->level == 1)      /* what the loop says */
        return w;
    const double against = TRANSPOSE_LINE * bytes;
    w.source = rows || columns || diagonals ? walk : w.source;
    if (is_in_place(c)) {   /* half of the elements lie in rows, half in columns */
        w.fetched_bytes = w.updated_bytes = rows && !is_kept(c, column) ? bytes / 2 + against / 2 : bytes;
        w.source = rows ? walk : inside;
        return w;
    }
    w.fetched_bytes = (columns && !is_kept(c, column)) || (diagonals && !is_kept(c, 2 * column)) ? against : bytes;
    w.written_bytes = (rows && !is_kept(c, column)) || (diagonals && !is_kept(c, 2 * column)) ? against : bytes;
    return w;
}

/* --- verification ---------------------------------------------------------------------------------------------- */

static void poison(const pl_case *c)
{
    if (is_in_place(c))
        fill(c, &(pl_piece){{0, c->n}, {0, c->n}});    /* passes have turned it over and over */
    else
        memset(matrix_b(c), 0xFF, matrix_bytes(c));     /* not a number */
}

/* What pads the rows must not have been written. */
static bool padding_is_intact(const pl_case *c)
{
    const size_t ld = leading(c);
    const unsigned char untouched = is_in_place(c) ? 0 : 0xFF;
    const unsigned char *const result = (const unsigned char *)(is_in_place(c) ? matrix_a(c) : matrix_b(c));
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = (i * ld + c->n) * sizeof(double); k < (i + 1) * ld * sizeof(double); k++)
            if (result[k] != untouched)
                return false;
    return true;
}

/* From the indices, not from A: a loop that spoils its input is found as well. */
static double verify(const pl_case *c)
{
    const bool as_before = goes(c, COPY);
    const double *const result = is_in_place(c) ? matrix_a(c) : matrix_b(c);
    const size_t ld = leading(c);
    double worst = padding_is_intact(c) ? 0 : INFINITY;
    for (size_t i = 0; i < c->n && !isnan(worst); i++)
        for (size_t j = 0; j < c->n; j++)
            worst = pl_worse(worst, fabs(result[i * ld + j] - (as_before ? value(c, i, j) : value(c, j, i))));
    return worst;
}

static const pl_kernel transpose = {
    .name = "transpose", .title = "B(j,i) = A(i,j), --size is the dimension of the square matrices", .variants = variants,
    .parameters = parameters, .usual_size = 1025 /* the source's */, .check = check, .footprint = footprint, .create = create, .touch = touch,
    .plan = plan, .run = run, .share = share, .work = work, .verify = verify, .poison = poison,
    .buffers = pl_data_buffers, .destroy = pl_buffers_destroy, .facts = facts,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &transpose); }
