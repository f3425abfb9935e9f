/* Sparse matrix times vector as the runtime sees it: variants, data, model, verification. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "matrix.h"

enum layout { CRS, SELL };

static const pl_variant variants[] = {
    {"plain", PL_LOOP(spmv_plain), .about = "CRS, one sum per row, as the compiler makes it"},
    {"unroll", PL_LOOP(spmv_unroll), .about = "plain, four sums per row"},
    {"prefetch", PL_LOOP(spmv_prefetch), .about = "plain, software prefetch of x, --distance nonzeros ahead"},
    {"stream", PL_LOOP(spmv_stream), .about = "unroll, software prefetch of values and indices, --ahead nonzeros ahead"},
    PL_WIDEST_AVX("simd", spmv_simd, .about = "plain, gather instructions along the row")
    {"sell", .layout = SELL, PL_LOOP(spmv_sell), .about = "SELL-8-sigma instead of CRS, as the compiler makes it"},
    {"sell_stream", .layout = SELL, PL_LOOP(spmv_sell_stream), .about = "sell, prefetch as in stream"},
    PL_WIDEST_AVX("sell_simd", spmv_sell_simd, .layout = SELL, .about = "sell, gather instructions")
    {0},
};

enum columns { RANDOM, BANDED };
static const char *const columns[] = {"random", "banded", NULL};

/* Class A of CG has 14000 rows, and vectors of 11 random nonzeros besides their own (NPB 1, section 2.6). */
enum { CLASS_A_ROWS = 14000, CLASS_A_NONZER = 11, DEFAULT_BAND = 1000 };

static const pl_parameter parameters[] = {
    [SPMV_DISTANCE] = {"distance", 32, 1, "prefetch distance in nonzeros"},
    [SPMV_AHEAD] = {"ahead", 1024, 1, "stream: prefetch distance in nonzeros"},
    [SPMV_NONZER] = {"nonzer", CLASS_A_NONZER, 1, "m of the generator: about m * (m + 1) + 1 nonzeros per row", .most = 100,
                     .of_data = true},
    [SPMV_COLUMNS] = {"columns", RANDOM, 1, "of the generator: anywhere, or near the diagonal", .words = columns,
                      .of_data = true},
    [SPMV_BAND] = {"band", DEFAULT_BAND, 1, "banded: columns within twice this of the diagonal", .of_data = true},
    [SPMV_SIGMA] = {"sigma", 1024, SPMV_CHUNK, "sell: rows are sorted by length within so many", .of_data = true},
    {0},
};

static const pl_string_parameter strings[] = {{"matrix", "Matrix Market file, instead of the generator; --size is then its rows"}, {0}};
enum { MATRIX };

/* --- the matrix of a case ------------------------------------------------------------------------------------- */

static spmv_recipe recipe_of(const pl_case *c)
{
    if (c->text[MATRIX])
        return (spmv_recipe){.file = c->text[MATRIX]};
    spmv_recipe r = {.rows = c->n, .band = c->n, .vector = (size_t)c->parameters[SPMV_NONZER] + 1};
    if (c->parameters[SPMV_COLUMNS] == BANDED && (size_t)c->parameters[SPMV_BAND] < c->n)
        r.band = (size_t)c->parameters[SPMV_BAND];
    const size_t places = r.band < c->n ? r.band + 1 : c->n;     /* of the first and last vectors, which have the fewest */
    r.vector = r.vector < places ? r.vector : places;
    return r;
}

static size_t own_size(const char *const *text)
{
    return text[MATRIX] ? spmv_source_of(&(spmv_recipe){.file = text[MATRIX]})->rows : CLASS_A_ROWS;
}

static void check_file(const pl_case *c)
{
    const spmv_recipe recipe = recipe_of(c);
    const spmv_source *m = spmv_source_of(&recipe);
    if (c->n != m->rows)
        pl_fail("--size %zu: --matrix %s has %zu rows: leave --size out", c->n, c->text[MATRIX], m->rows);
    for (int i = SPMV_NONZER; i <= SPMV_BAND; i++)
        if (c->parameters[i] != parameters[i].value)
            pl_fail("--%s: is of the generator, and --matrix %s takes its place: leave one of them out", parameters[i].name,
                    c->text[MATRIX]);
}

static void check(const pl_case *c)
{
    if (c->text[MATRIX]) {
        check_file(c);
        return;
    }
    if (c->n > INT32_MAX)
        pl_fail("--size %zu: column indices have 32 bits: give at most %d rows", c->n, INT32_MAX);
    if (c->parameters[SPMV_BAND] != DEFAULT_BAND && c->parameters[SPMV_COLUMNS] != BANDED)
        pl_fail("--band %ld: is of --columns banded: give that, too", c->parameters[SPMV_BAND]);
    const spmv_recipe recipe = recipe_of(c);
    const double needed = spmv_bytes_needed(&recipe), available = (double)pl_memory_available();
    if (needed > 0.9 * available)
        pl_fail("--size %zu: needs %.1f GB in all, of %.1f GB that are free: choose a smaller size, or --nonzer below %ld",
                c->n, needed / 1e9, available / 1e9, c->parameters[SPMV_NONZER]);
}

/* --- data ----------------------------------------------------------------------------------------------------- */

enum { PTR, COLUMN, VALUE, ROW, X, Y, BUFFERS };

typedef struct {
    pl_buffers *buffers;
    spmv_source *source;
    const spmv_order *order;    /* NULL: CRS */
    size_t pieces;              /* what threads share out: rows, or chunks */
    const int64_t *ptr;         /* pieces + 1: known before the first touch */
    spmv_matrix a;
    double *x, *y;
} product;

static void sizes_of(const pl_case *c, spmv_source *m, size_t *bytes)
{
    const spmv_order *o = c->variant->layout == SELL ? spmv_order_of(m, c->parameters[SPMV_SIGMA]) : NULL;
    const size_t pieces = o ? o->chunks : m->rows, slots = (size_t)(o ? o->ptr : m->ptr)[pieces];
    bytes[PTR] = (pieces + 1) * sizeof(int64_t);
    bytes[COLUMN] = slots * sizeof(int32_t);
    bytes[VALUE] = slots * sizeof(double);
    bytes[ROW] = o ? m->rows * sizeof(int32_t) : 0;
    bytes[X] = m->columns * sizeof(double);
    bytes[Y] = m->rows * sizeof(double);
}

static size_t footprint(const pl_case *c)
{
    const spmv_recipe recipe = recipe_of(c);
    size_t bytes[BUFFERS], sum = 0;
    sizes_of(c, spmv_source_of(&recipe), bytes);
    for (int i = 0; i < BUFFERS; i++)
        sum += bytes[i];
    return sum;
}

static void *create(const pl_case *c)
{
    const spmv_recipe recipe = recipe_of(c);
    product *p = pl_allocate(sizeof *p, "the matrix");
    size_t bytes[BUFFERS];
    p->source = spmv_take(&recipe);
    p->order = c->variant->layout == SELL ? spmv_order_of(p->source, c->parameters[SPMV_SIGMA]) : NULL;
    sizes_of(c, p->source, bytes);
    p->buffers = pl_buffers_create(c, BUFFERS, bytes, NULL);
    p->pieces = p->order ? p->order->chunks : p->source->rows;
    p->ptr = p->order ? p->order->ptr : p->source->ptr;
    void *const *at = p->buffers->at;
    p->a = (spmv_matrix){p->source->rows, at[PTR], at[COLUMN], at[VALUE], at[ROW]};
    p->x = at[X];
    p->y = at[Y];
    return p;
}

static void destroy(void *data)
{
    spmv_leave(((product *)data)->source);
    pl_first_buffers_destroy(data);
}

/* Work before a piece, in nonzeros: a row is worth two, 24 bytes of pointer and result. */
static int64_t work_before(const product *p, size_t piece)
{
    return p->ptr[piece] + (p->order ? 2 * SPMV_CHUNK : 2) * (int64_t)piece;
}

/* Where a part ends that begins with this piece and has no more work than `most`. */
static size_t end_of(const product *p, size_t begin, int64_t most)
{
    size_t low = begin, high = p->pieces;
    while (low < high) {
        const size_t middle = high - (high - low) / 2;
        if (work_before(p, middle) - work_before(p, begin) <= most)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Parts are contiguous, and the largest has as little work as may be, to a 256th of the mean: few chunks are left for each of many
 * threads, and those of long rows are twice the others. */
static pl_range part_of(const product *p, int thread, int threads)
{
    const int64_t mean = work_before(p, p->pieces) / threads;
    int64_t low = mean, high = mean + 1 + (int64_t)(p->source->longest + 2) * (p->order ? SPMV_CHUNK : 1);
    while (high - low > mean / 256) {
        const int64_t middle = low + (high - low) / 2;
        size_t end = 0;
        for (int t = 0; t < threads; t++)
            end = end_of(p, end, middle);
        if (end == p->pieces)
            high = middle;
        else
            low = middle + 1;
    }
    pl_range part = {0, 0};
    for (int t = 0; t <= thread; t++)
        part = (pl_range){part.end, end_of(p, part.end, high)};
    return part;
}

static double share(const pl_case *c, int thread)
{
    const pl_range own = pl_narrow(c, part_of(c->data, thread, c->threads));
    return (double)(work_before(c->data, own.end) - work_before(c->data, own.begin));
}

typedef struct { uint64_t *work; int32_t *column; double *value; } row_space;

static void lay_out_crs(const product *p, size_t row, const row_space *s)
{
    const int64_t k = p->ptr[row];
    spmv_row(p->source, row, s->work, (int32_t *)p->buffers->at[COLUMN] + k, (double *)p->buffers->at[VALUE] + k);
    p->y[row] = 0;
}

/* The zeros that fill up a row multiply the element of x that its last one does: it is in the cache. */
static void lay_out_chunk(const product *p, size_t chunk, const row_space *s)
{
    int32_t *const column = p->buffers->at[COLUMN], *const rows = p->buffers->at[ROW];
    double *const value = p->buffers->at[VALUE];
    for (size_t r = 0; r < SPMV_CHUNK; r++) {
        const size_t place = SPMV_CHUNK * chunk + r;
        size_t length = 0;
        if (place < p->a.rows) {
            const int32_t row = rows[place] = p->order->row[place];
            length = spmv_row(p->source, (size_t)row, s->work, s->column, s->value);
            p->y[row] = 0;
        }
        for (int64_t k = p->ptr[chunk] + (int64_t)r, i = 0; k < p->ptr[chunk + 1]; k += SPMV_CHUNK, i++) {
            const bool filled = i >= (int64_t)length;
            column[k] = !filled ? s->column[i] : length ? s->column[length - 1] : 0;
            value[k] = filled ? 0 : s->value[i];
        }
    }
}

static void touch(const pl_case *c, int thread, int threads)
{
    const product *p = c->data;
    const size_t longest = p->source->longest;
    const row_space space = {.work = pl_allocate(2 * longest * sizeof(uint64_t), "a row"),
                             .column = pl_allocate(longest * sizeof(int32_t), "a row"),
                             .value = pl_allocate(longest * sizeof(double), "a row")};
    const pl_range own = part_of(p, thread, threads), of_x = pl_part(p->source->columns, thread, threads);
    int64_t *const ptr = p->buffers->at[PTR];
    for (size_t piece = own.begin; piece < own.end; piece++) {
        ptr[piece] = p->ptr[piece];
        if (p->order)
            lay_out_chunk(p, piece, &space);
        else
            lay_out_crs(p, piece, &space);
    }
    if (thread == threads - 1)
        ptr[p->pieces] = p->ptr[p->pieces];
    for (size_t j = of_x.begin; j < of_x.end; j++)
        p->x[j] = spmv_x(j);
    free(space.work);
    free(space.column);
    free(space.value);
}

static void plan(const pl_case *c, pl_plan *p) { p->part = pl_narrow(c, part_of(c->data, p->thread, c->threads)); }

static void run(const pl_case *c, const pl_plan *p)
{
    const product *x = c->data;
    ((spmv_loop *)p->loop)(p->part, &x->a, x->x, x->y, c->parameters);
}

/* --- model, verification ---------------------------------------------------------------------------------------- */

static pl_work work(const pl_case *c)
{
    const product *p = c->data;
    const double rows = (double)p->source->rows, of_x = 8 * (double)p->source->columns;
    const double nonzeros = (double)p->source->ptr[p->source->rows], slots = (double)p->ptr[p->pieces];
    const double moved = 12 * slots + 8 * (double)(p->pieces + 1) + (p->order ? 4 * rows : 0) + of_x;
    return (pl_work){
        .load_bytes = 12 * nonzeros + 8 * (rows + 1) + of_x, .store_bytes = 8 * rows, .flops = 2 * nonzeros,
        .fetched_bytes = moved, .written_bytes = 8 * rows,
        .source = p->order ? "model: 12 bytes per slot (filling included), 8 per chunk, 4 + 8 per row of order and y; x "
                             "once at least, more where it does not stay in the caches"
                           : "model: 12 bytes per nonzero, 8 + 8 per row of pointer and y; x once at least, more where it "
                             "does not stay in the caches"};
}

static double tolerance(const pl_case *c)
{
    const product *p = c->data;
    return p->source->tolerance;
}

static void poison(const pl_case *c)
{
    const product *p = c->data;
    memset(p->y, 0xFF, p->source->rows * sizeof *p->y);     /* not a number */
}

/* Against the product by vectors, or by the elements of the file.  Where sums are rounded, the error is relative to the
 * sum of the row's magnitudes. */
static double verify(const pl_case *c)
{
    const product *p = c->data;
    const size_t rows = p->source->rows;
    double *right = pl_allocate(rows * sizeof *right, "the verification");
    double *sizes = p->source->exact ? NULL : pl_allocate(rows * sizeof *sizes, "the verification");
    double worst = 0;
    spmv_reference(p->source, right, sizes);
    for (size_t i = 0; i < rows && !isnan(worst); i++) {
        double error = fabs(p->y[i] - right[i]);
        if (sizes && error != 0)
            error /= sizes[i];
        worst = pl_worse(worst, error);
    }
    free(right);
    free(sizes);
    return worst;
}

static const pl_kernel spmv = {
    .name = "spmv", .title = "y = A x, A sparse; --size is the number of rows", .variants = variants, .parameters = parameters,
    .strings = strings, .own_size = own_size, .check = check, .footprint = footprint, .create = create, .touch = touch,
    .plan = plan, .narrows = true, .run = run, .share = share, .work = work, .verify = verify, .tolerance = tolerance, .poison = poison,
    .buffers = pl_first_buffers, .destroy = destroy,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &spmv); }
