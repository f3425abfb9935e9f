/* Patterns from a file, with the meaning that Spatter gives them: rows of indices, each row delta further on. */
#include "pattern_data.h"

static const pl_parameter parameters[] = {
    [GATHER_CONFIG] = {"config", 1, 1, "which of the file's patterns: its line", .of_data = true},
    [GATHER_DISTANCE] = {"distance", 64, 1, "prefetch distance in elements"},
    {0},
};

static const pl_string_parameter strings[] = {
    {"pattern", "the file of patterns; the check gather_patterns makes it of Spatter's JSON"},
    {0},
};

/* --size, where it is not given. */
static size_t no_size(const char *const *text) { return 0; }

static size_t elements(const pl_case *c)
{
    if (c->n)
        pl_fail("--size: patterns have their own, length times count: leave it out");
    return gather_pattern_of(c)->length * gather_pattern_of(c)->count;
}

static size_t footprint(const pl_case *c)
{
    const gather_pattern *p = gather_pattern_of(c);
    return sizeof(double) * (p->read + p->written + dense_elements(p, (size_t)c->threads)) +
           sizeof(int32_t) * (p->indices + (has_inner(p) ? p->length : 0));
}

static void check(const pl_case *c)
{
    const gather_pattern *p = gather_pattern_of(c);
    const size_t available = pl_memory_available();
    if (!is_shared(p) && p->wrap > ((size_t)1 << 50) / p->length / (size_t)c->threads)
        pl_fail("%s, line %ld: more elements than can be counted: choose a smaller wrap", c->text[0], c->parameters[GATHER_CONFIG]);
    if (footprint(c) > available / 10 * 9)
        pl_fail("%s, line %ld: needs %.1f GB, of %.1f GB that are free: choose a smaller count, delta or index", c->text[0],
                c->parameters[GATHER_CONFIG], (double)footprint(c) / 1e9, (double)available / 1e9);
}

static void plan(const pl_case *c, pl_plan *p)
{
    const gather_rows r = gather_rows_of(c, p->thread);
    p->part = (pl_range){r.first, r.last};
}

static void run(const pl_case *c, const pl_plan *p)
{
    const gather_rows r = gather_rows_of(c, p->thread);
    gather_run_rows(c, &r, p->thread);
}

/* --- model ------------------------------------------------------------------------------------------------ */

static gather_accesses accesses(const pl_case *c, int thread)
{
    const gather_pattern *p = ((const gather_data *)c->data)->p;
    const gather_rows r = gather_rows_of(c, thread);
    return (gather_accesses){r.first, r.last, r.length, r.delta, list(c, INDEX), is_multi(p) ? list(c, INNER) : NULL};
}

static gather_accesses accesses_of_the_scatter(const pl_case *c, int thread)
{
    const gather_rows r = gather_rows_of(c, thread);
    return (gather_accesses){r.first, r.last, r.length, r.delta_to, list(c, INNER), NULL};
}

static void count_lines(const pl_case *c)
{
    gather_data *s = c->data;
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
    const gather_data *s = c->data;
    const gather_pattern *p = s->p;
    const double n = (double)(p->count * p->length), lists = has_inner(p) ? 2 : 1;
    const size_t below = PL_LINE * gather_lines_below(c), rows = p->count / (size_t)c->threads;
    const size_t kept = dense_rows(p) < rows ? dense_rows(p) : rows;    /* of the dense array, by each thread */
    const bool dense_moves = has_dense(p) && (c->level == 1 || sizeof(double) * p->length * kept > below);
    const bool lists_move = c->level == 1 || sizeof(int32_t) * (p->indices + (has_inner(p) ? p->length : 0)) > below;
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

static void facts(const pl_case *c, pl_fact *found)
{
    const gather_pattern *p = gather_pattern_of(c);
    found[0] = (pl_fact){"name", p->name, 0};
    found[1] = (pl_fact){"kernel", gather_kind_names[p->kind], 0};
    found[2] = (pl_fact){"length", NULL, (double)p->length};
    found[3] = (pl_fact){"count", NULL, (double)p->count};
}

static const pl_kernel patterns = {
    .name = "gather_patterns", .title = "Spatter's kernels on the patterns of a file", .variants = gather_variants,
    .parameters = parameters, .strings = strings, .own_size = no_size, .elements = elements, .check = check, .footprint = footprint,
    .create = gather_data_create, .touch = gather_data_touch, .destroy = gather_data_destroy, .plan = plan, .run = run, .work = work,
    .poison = gather_poison, .verify = gather_verify, .buffers = pl_first_buffers, .facts = facts,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &patterns); }
