/* Patterns from a file, with the meaning that Spatter gives them: rows of indices, each row delta further on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "patterns.h"

enum { CONFIG, DISTANCE };

static const pl_parameter parameters[] = {
    [CONFIG] = {"config", 1, 1, "which of the file's patterns: its line", .of_data = true},
    [DISTANCE] = {"distance", 64, 1, "prefetch distance in elements"},
    {0},
};

static const pl_string_parameter strings[] = {
    {"pattern", "the file of patterns; python -m plumbline.model.spatter makes it of Spatter's JSON"},
    {0},
};

static const gather_pattern *pattern(const pl_case *c)
{
    if (!c->text[0])
        pl_fail("--pattern is missing: give a file of patterns");
    const gather_patterns *all = gather_read_patterns(c->text[0]);
    if (c->parameters[CONFIG] > all->count)
        pl_fail("--config %ld: %s has %d patterns: choose one of them", c->parameters[CONFIG], c->text[0], all->count);
    return &all->pattern[c->parameters[CONFIG] - 1];
}

/* --size, where it is not given. */
static size_t no_size(const char *const *text)
{
    (void)text;
    return 0;
}

static size_t elements(const pl_case *c)
{
    if (c->n)
        pl_fail("--size: patterns have their own, length times count: leave it out");
    return pattern(c)->length * pattern(c)->count;
}

static bool has_dense(const gather_pattern *p) { return p->kind != GS; }

static bool writes_dense(const gather_pattern *p) { return p->kind == GATHER || p->kind == MULTIGATHER; }

static bool is_multi(const gather_pattern *p) { return p->kind == MULTIGATHER || p->kind == MULTISCATTER; }

/* --- data ------------------------------------------------------------------------------------------------- */

enum { READ, WRITTEN, DENSE, INDEX, INNER, BUFFERS };

typedef struct {
    pl_buffers *buffers;
    const gather_pattern *p;
    size_t *order;          /* which of the pattern's indices is the j-th: 0, 1, ... or sorted by where they lead */
    size_t block;           /* rows that `columns` takes at a time */
    double read, written;   /* lines, of gather_lines(), for this level and these threads */
    int level, threads;
} rows_of_pattern;

/* Rows of the dense array.  Where they are used again, each thread has its own: threads that write the same rows would
 * leave results that nobody can foretell.  As Spatter with --dense-buffers. */
static bool is_shared(const gather_pattern *p) { return p->wrap >= p->count; }

static size_t dense_rows(const gather_pattern *p) { return is_shared(p) ? p->count : p->wrap; }

/* Doubles from one thread's rows to the next one's. */
static size_t dense_stride(const gather_pattern *p)
{
    return is_shared(p) ? 0 : (dense_rows(p) * p->length / 8 + 2) * 8;
}

static size_t dense_elements(const gather_pattern *p, size_t threads)
{
    return !has_dense(p) ? 0 : is_shared(p) ? p->count * p->length : threads * dense_stride(p);
}

static size_t footprint(const pl_case *c)
{
    const gather_pattern *p = pattern(c);
    return sizeof(double) * (p->read + p->written + dense_elements(p, (size_t)c->threads)) +
           sizeof(int32_t) * (p->indices + (p->inner ? p->length : 0));
}

static void check(const pl_case *c)
{
    const gather_pattern *p = pattern(c);
    const size_t available = pl_memory_available();
    if (!is_shared(p) && p->wrap > ((size_t)1 << 50) / p->length / (size_t)c->threads)
        pl_fail("%s, line %ld: more elements than can be counted: choose a smaller wrap", c->text[0], c->parameters[CONFIG]);
    if (footprint(c) > available / 10 * 9)
        pl_fail("%s, line %ld: needs %.1f GB, of %.1f GB that are free: choose a smaller count, delta or index", c->text[0],
                c->parameters[CONFIG], (double)footprint(c) / 1e9, (double)available / 1e9);
}

/* Where the j-th index of the pattern leads in the array that the kernel is named after, in the first row. */
static size_t leads_to(const gather_pattern *p, size_t j)
{
    return (size_t)(is_multi(p) ? p->index[p->inner[j]] : p->index[j]);
}

typedef struct { size_t to, j; } place;

/* By place, equal ones in their order: the last store to a place must stay the last. */
static int by_place(const void *a, const void *b)
{
    const place *x = a, *y = b;
    return x->to != y->to ? (x->to > y->to) - (x->to < y->to) : (x->j > y->j) - (x->j < y->j);
}

static size_t *order_of(const pl_case *c, const gather_pattern *p)
{
    size_t *order = pl_allocate(p->length * sizeof *order, "the order of a pattern");
    place *places = pl_allocate(p->length * sizeof *places, "the order of a pattern");
    for (size_t j = 0; j < p->length; j++)
        places[j] = (place){gather_is_sorted(c->variant) ? leads_to(p, j) : 0, j};
    qsort(places, p->length, sizeof *places, by_place);
    for (size_t j = 0; j < p->length; j++)
        order[j] = places[j].j;
    free(places);
    return order;
}

/* Where the j-th element of the first row is stored; of rows that are stored densely, each index has places of its own. */
static size_t stored_at(const rows_of_pattern *s, size_t j)
{
    return s->p->kind == GS ? (size_t)s->p->inner[s->order[j]] : leads_to(s->p, s->order[j]);
}

/* Where an index leads some rows later to the place of an index after it, the later store must stay the later one: fewer rows than
 * that at a time.  Long rows are left as they are. */
static size_t block_of(const rows_of_pattern *s)
{
    enum { BLOCK = 64, LONG_ROW = 256 };
    const size_t delta = s->p->kind == GS ? s->p->delta_to : s->p->delta, length = s->p->length;
    size_t block = length > LONG_ROW ? 1 : BLOCK;
    for (size_t j = 0; j < length && block > 1 && !writes_dense(s->p); j++)
        for (size_t k = 0; k < j; k++) {
            const size_t later = stored_at(s, j), sooner = stored_at(s, k);
            if (delta == 0 && later == sooner)
                block = 1;
            else if (delta > 0 && later > sooner && (later - sooner) % delta == 0 && (later - sooner) / delta < block)
                block = (later - sooner) / delta;
        }
    return block;
}

static void *create(const pl_case *c)
{
    rows_of_pattern *s = pl_allocate(sizeof *s, "the pattern");
    const gather_pattern *p = s->p = pattern(c);
    /* Cases with other numbers of threads may share the data. */
    const size_t most = (size_t)sysconf(_SC_NPROCESSORS_CONF), threads = (size_t)c->threads > most ? (size_t)c->threads : most;
    const size_t bytes[BUFFERS] = {
        [READ] = sizeof(double) * p->read, [WRITTEN] = sizeof(double) * p->written,
        [DENSE] = sizeof(double) * dense_elements(p, threads),
        [INDEX] = sizeof(int32_t) * p->indices, [INNER] = sizeof(int32_t) * (p->inner ? p->length : 0)};
    s->buffers = pl_buffers_create(c, BUFFERS, bytes, NULL);
    if (!s->buffers)
        return NULL;
    s->order = order_of(c, p);
    s->block = block_of(s);
    return s;
}

static void destroy(void *data)
{
    rows_of_pattern *s = data;
    pl_buffers_destroy(s->buffers);
    free(s->order);
    free(s);
}

static double *array(const pl_case *c, int which) { return ((const rows_of_pattern *)c->data)->buffers->at[which]; }

static int32_t *list(const pl_case *c, int which) { return ((const rows_of_pattern *)c->data)->buffers->at[which]; }

static double *dense(const pl_case *c, int thread)
{
    return array(c, DENSE) + (size_t)thread * dense_stride(((const rows_of_pattern *)c->data)->p);
}

/* What stands in the lists that the loop uses; the multi kernels' order is that of the inner list. */
static int32_t listed(const rows_of_pattern *s, int which, size_t j)
{
    const gather_pattern *p = s->p;
    if (which == INDEX)
        return p->index[is_multi(p) ? j : s->order[j]];
    return p->inner[s->order[j]];
}

/* read(k) = k: each element tells where it came from, exactly. */
static void touch(const pl_case *c, int thread, int threads)
{
    const rows_of_pattern *s = c->data;
    const gather_pattern *p = s->p;
    const pl_range read = pl_part(p->read, thread, threads), written = pl_part(p->written, thread, threads);
    for (size_t k = read.begin; k < read.end; k++)
        array(c, READ)[k] = (double)k;
    for (size_t k = written.begin; k < written.end; k++)
        array(c, WRITTEN)[k] = 0;
    if (has_dense(p) && is_shared(p)) {
        const pl_range part = pl_part(dense_elements(p, 1), thread, threads);
        memset(array(c, DENSE) + part.begin, 0, sizeof(double) * (part.end - part.begin));
    } else
        for (int t = thread; has_dense(p) && t < c->threads; t += threads)
            memset(dense(c, t), 0, sizeof(double) * dense_stride(p));
    for (size_t j = 0; thread == 0 && j < p->indices; j++)
        list(c, INDEX)[j] = listed(s, INDEX, j);
    for (size_t j = 0; thread == 0 && p->inner && j < p->length; j++)
        list(c, INNER)[j] = listed(s, INNER, j);
}

static gather_rows rows_of(const pl_case *c, int thread)
{
    const rows_of_pattern *s = c->data;
    const gather_pattern *p = s->p;
    const pl_range part = pl_part(p->count, thread, c->threads);
    return (gather_rows){.first = part.begin, .last = part.end, .length = p->length, .delta = p->delta, .delta_to = p->delta_to,
                         .wrap = p->wrap, .block = s->block, .ahead = (size_t)c->parameters[DISTANCE]};
}

static void run_rows(const pl_case *c, const gather_rows *r, int thread)
{
    const gather_pattern *p = ((const rows_of_pattern *)c->data)->p;
    gather_loop *const loop = gather_loop_of(c->variant, p->kind);
    const int32_t *const inner = p->inner ? list(c, INNER) : NULL;
    if (p->kind == GS)
        loop(r, array(c, WRITTEN), array(c, READ), list(c, INDEX), inner);
    else if (writes_dense(p))
        loop(r, dense(c, thread), array(c, READ), list(c, INDEX), inner);
    else
        loop(r, array(c, WRITTEN), dense(c, thread), list(c, INDEX), inner);
}

static void plan(const pl_case *c, pl_plan *p)
{
    const gather_rows r = rows_of(c, p->thread);
    p->part = (pl_range){r.first, r.last};
}

static void run(const pl_case *c, const pl_plan *p)
{
    const gather_rows r = rows_of(c, p->thread);
    run_rows(c, &r, p->thread);
}

/* --- model ------------------------------------------------------------------------------------------------ */

static gather_accesses accesses(const pl_case *c, int thread)
{
    const gather_pattern *p = ((const rows_of_pattern *)c->data)->p;
    const gather_rows r = rows_of(c, thread);
    return (gather_accesses){r.first, r.last, r.length, r.delta, list(c, INDEX), is_multi(p) ? list(c, INNER) : NULL};
}

static gather_accesses accesses_of_the_scatter(const pl_case *c, int thread)
{
    const gather_rows r = rows_of(c, thread);
    return (gather_accesses){r.first, r.last, r.length, r.delta_to, list(c, INNER), NULL};
}

static void count_lines(const pl_case *c)
{
    rows_of_pattern *s = c->data;
    if (s->threads == c->threads && s->level == c->level)
        return;
    const double lines = gather_lines(c, s->p->read ? s->p->read : s->p->written, accesses);
    s->read = s->p->read ? lines : 0;
    s->written = s->p->kind == GS ? gather_lines(c, s->p->written, accesses_of_the_scatter) : s->p->written ? lines : 0;
    s->threads = c->threads;
    s->level = c->level;
}

static pl_work work(const pl_case *c)
{
    const rows_of_pattern *s = c->data;
    const gather_pattern *p = s->p;
    const double n = (double)(p->count * p->length), lists = p->inner ? 2 : 1;
    const size_t below = PL_LINE * gather_lines_below(c), rows = p->count / (size_t)c->threads;
    const size_t kept = dense_rows(p) < rows ? dense_rows(p) : rows;    /* of the dense array, by each thread */
    const bool dense_moves = has_dense(p) && (c->level == 1 || sizeof(double) * p->length * kept > below);
    const bool lists_move = c->level == 1 || sizeof(int32_t) * (p->indices + (p->inner ? p->length : 0)) > below;
    pl_work w = {.source = "model: the lines of the sparse arrays that are accessed, counted; again only after as many other "
                           "accesses as the cache below has lines; indices and dense rows where they are too large for that "
                           "cache; 8 bytes per element are moved (Spatter; gs 16)"};
    if (c->level == 1) {
        w.fetched_bytes = (p->read ? 8 * n : 0) + (writes_dense(p) || p->kind == GS ? 0 : 8 * n);
        w.written_bytes = 8 * n;
    } else {
        count_lines(c);
        w.fetched_bytes = PL_LINE * s->read + (dense_moves && !writes_dense(p) ? 8 * n : 0);
        w.written_bytes = PL_LINE * s->written + (dense_moves && writes_dense(p) ? 8 * n : 0);
    }
    w.fetched_bytes += lists_move ? 4 * lists * n : 0;
    w.load_bytes = p->read ? 8 * n : 0;
    w.store_bytes = p->written ? 8 * n : 0;
    return w;
}

/* --- verification ----------------------------------------------------------------------------------------- */

static size_t rows_kept(const gather_pattern *p, const gather_rows *r)
{
    const size_t rows = r->last - r->first;
    return p->wrap < rows ? p->wrap : rows;
}

/* What a scatter finds in the dense array. */
static double dense_value(const gather_pattern *p, size_t i, size_t j) { return (double)(1 + i % p->wrap * p->length + j); }

/* All that is written is made not a number; all that is read has its values: other variants have run. */
static void poison(const pl_case *c)
{
    const rows_of_pattern *s = c->data;
    const gather_pattern *p = s->p;
    touch(c, 0, 1);
    if (p->written)
        memset(array(c, WRITTEN), 0xFF, sizeof(double) * p->written);
    if (writes_dense(p))
        memset(array(c, DENSE), 0xFF, sizeof(double) * dense_elements(p, (size_t)c->threads));
    for (int t = 0; has_dense(p) && !writes_dense(p) && t < (is_shared(p) ? 1 : c->threads); t++)
        for (size_t i = 0; i < dense_rows(p); i++)
            for (size_t j = 0; j < p->length; j++)
                dense(c, t)[i * p->length + j] = dense_value(p, i, j);
    pl_buffers_set_guards(s->buffers);
}

/* What is read only is as it was. */
static bool inputs_are_intact(const pl_case *c)
{
    const rows_of_pattern *s = c->data;
    const gather_pattern *p = s->p;
    bool intact = pl_buffers_guards_intact(s->buffers);
    for (size_t j = 0; j < p->indices; j++)
        intact &= list(c, INDEX)[j] == listed(s, INDEX, j);
    for (size_t j = 0; p->inner && j < p->length; j++)
        intact &= list(c, INNER)[j] == listed(s, INNER, j);
    for (size_t k = 0; k < p->read; k++)
        intact &= array(c, READ)[k] == (double)k;
    for (int t = 0; has_dense(p) && !writes_dense(p) && t < (is_shared(p) ? 1 : c->threads); t++)
        for (size_t i = 0; i < dense_rows(p); i++)
            for (size_t j = 0; j < p->length; j++)
                intact &= dense(c, t)[i * p->length + j] == dense_value(p, i, j);
    return intact;
}

static double worse(double worst, double error) { return isnan(worst) || isnan(error) ? NAN : fmax(worst, error); }

/* A row of a gather: element j is the place that the pattern's index leads to. */
static double error_of_row(const pl_case *c, int thread, size_t i)
{
    const rows_of_pattern *s = c->data;
    const gather_pattern *p = s->p;
    const double *x = dense(c, thread) + i % p->wrap * p->length;
    double worst = 0;
    for (size_t j = 0; j < p->length; j++)
        worst = worse(worst, fabs(x[j] - (double)(leads_to(p, s->order[j]) + p->delta * i)));
    return worst;
}

enum { ROWS_ALONE = 2048 };

/* The last rows stand there; those before them were overwritten, so that some are done again, each alone. */
static double verify_gather(const pl_case *c)
{
    const gather_pattern *p = ((const rows_of_pattern *)c->data)->p;
    double worst = 0;
    size_t numbers = 0, expected = 0;
    for (int t = 0; t < c->threads; t++) {
        const gather_rows r = rows_of(c, t);
        for (size_t i = r.last - rows_kept(p, &r); i < r.last; i++)
            worst = worse(worst, error_of_row(c, t, i));
        expected += rows_kept(p, &r) * p->length;
    }
    for (size_t k = 0; k < dense_elements(p, (size_t)c->threads); k++)
        numbers += !isnan(array(c, DENSE)[k]);
    if (numbers != expected)
        return worse(worst, INFINITY);
    for (int t = 0; t < c->threads; t++) {
        const gather_rows all = rows_of(c, t);
        const size_t step = (all.last - all.first) * (size_t)c->threads / ROWS_ALONE + 1;
        for (size_t i = all.first; i < all.last; i += step) {
            gather_rows one = all;
            one.first = i;
            one.last = i + 1;
            memset(dense(c, t) + i % p->wrap * p->length, 0xFF, sizeof(double) * p->length);
            run_rows(c, &one, t);
            worst = worse(worst, error_of_row(c, t, i));
        }
    }
    return worst;
}

static bool take(uint64_t *bits, size_t k)
{
    const bool was = bits[k / 64] >> k % 64 & 1;
    bits[k / 64] |= (uint64_t)1 << k % 64;
    return was;
}

/* Several stores may go to one place: there stands the last one of a thread, and where the rows of threads overlap, that
 * of any of them.  From the last row backwards, the first store to a place that a thread has is its last one. */
static double verify_scatter(const pl_case *c)
{
    const rows_of_pattern *s = c->data;
    const gather_pattern *p = s->p;
    const double *a = array(c, WRITTEN);
    const size_t words = p->written / 64 + 1, delta = p->kind == GS ? p->delta_to : p->delta;
    uint64_t *const right = pl_allocate(words * sizeof *right, "the verification");
    uint64_t *const visited = pl_allocate(words * sizeof *visited, "the verification");
    uint64_t *const stored = pl_allocate(words * sizeof *stored, "the verification");
    double worst = 0;
    for (int t = 0; t < c->threads; t++) {
        const gather_rows r = rows_of(c, t);
        memset(visited, 0, words * sizeof *visited);
        for (size_t i = r.last; i-- > r.first;)
            for (size_t j = p->length; j-- > 0;) {
                const size_t o = s->order[j], k = (p->kind == GS ? (size_t)p->inner[o] : leads_to(p, o)) + delta * i;
                const double value = p->kind == GS ? (double)(leads_to(p, o) + p->delta * i) : dense_value(p, i, j);
                if (take(visited, k))
                    continue;
                take(stored, k);
                if (a[k] == value)
                    take(right, k);
            }
    }
    for (size_t k = 0; k < p->written && isfinite(worst); k++)
        if (take(stored, k) != !isnan(a[k]))
            worst = isnan(a[k]) ? NAN : INFINITY;
        else if (!isnan(a[k]) && !take(right, k))
            worst = INFINITY;
    free(right);
    free(visited);
    free(stored);
    return worst;
}

static double verify(const pl_case *c)
{
    const gather_pattern *p = ((const rows_of_pattern *)c->data)->p;
    const double error = writes_dense(p) ? verify_gather(c) : verify_scatter(c);
    return inputs_are_intact(c) ? error : worse(error, INFINITY);
}

static const void *where(const pl_case *c, size_t *bytes)
{
    const gather_pattern *p = ((const rows_of_pattern *)c->data)->p;
    *bytes = sizeof(double) * (p->read ? p->read : p->written);
    return array(c, p->read ? READ : WRITTEN);
}

static const pl_fact *facts(const pl_case *c)
{
    static pl_fact known[5];
    const gather_pattern *p = pattern(c);
    known[0] = (pl_fact){"name", p->name, 0};
    known[1] = (pl_fact){"kernel", gather_kind_names[p->kind], 0};
    known[2] = (pl_fact){"length", NULL, (double)p->length};
    known[3] = (pl_fact){"count", NULL, (double)p->count};
    return known;
}

static const pl_kernel patterns = {
    .name = "gather_patterns", .title = "Spatter's kernels on the patterns of a file", .variants = gather_variants,
    .parameters = parameters, .strings = strings, .own_size = no_size, .elements = elements, .check = check, .footprint = footprint,
    .create = create, .touch = touch, .plan = plan, .run = run, .work = work, .verify = verify, .poison = poison, .where = where, .destroy = destroy,
    .facts = facts,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &patterns); }
