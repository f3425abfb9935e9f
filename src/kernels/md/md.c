/* Molecular dynamics as the runtime sees it: variants, a pass, its model, its proof. */
#include <math.h>

#include "md.h"

static const pl_variant variants[] = {
    {"full", PL_LOOP(md_full), .about = "each pair twice, once for each atom, as the compiler makes it"},
    {"half", PL_LOOP(md_half), .about = "each pair of a thread's atoms once, as the compiler makes it"},
    PL_WIDEST_AVX("simd", md_full_simd, .about = "full, vectors of neighbours")
    {0},
};

static bool is_half(const pl_case *c) { return c->variant->loop == (pl_loop)md_half; }

/* --- data: --size is cells of the crystal along an edge, a record's size is atoms ------------------------------------------ */

enum { MOST = 400 };     /* a list's indices have 32 bits */

static size_t elements(const pl_case *c) { return md_atoms(c->n, MOST); }

static size_t edge_of(const pl_case *c) { return md_edge(c->n); }

static double box_of(const pl_case *c)
{
    double x[3];
    return (double)edge_of(c) * md_lattice(edge_of(c), 0, x);
}

static size_t footprint(const pl_case *c)
{
    const double edge = box_of(c);
    return md_footprint(c->n, (double[]){edge, edge, edge});
}

static void *create(const pl_case *c)
{
    const double edge = box_of(c), box[3] = {edge, edge, edge};
    double v[3];
    md_velocity(c->n, 0, v);
    return md_create(c, c->n, (double)c->n, box, (double[]){0, 0, 0}, box);
}

static md_worker worker(const pl_case *c, int thread, int threads) { return (md_worker){thread, threads, pl_part(c->n, thread, threads), {0, 0}}; }

/* --- ghosts: copies of own atoms near a face at the other side --------------------------------------------------------------- */

/* The sides, of 27, on which an atom has copies; as many of them. */
static int sides_of(const md_system *s, const double *x, int32_t *side)
{
    int along[3][2], count[3], found = 0;
    for (int d = 0; d < 3; d++) {
        count[d] = 0;
        along[d][count[d]++] = 1;
        if (x[d] < MD_REACH)
            along[d][count[d]++] = 2;
        else if (x[d] >= s->box[d] - MD_REACH)
            along[d][count[d]++] = 0;
    }
    for (int i = 0; i < count[0]; i++)
        for (int j = 0; j < count[1]; j++)
            for (int k = 0; k < count[2]; k++)
                if (i + j + k)
                    side[found++] = along[0][i] + 3 * along[1][j] + 9 * along[2][k];
    return found;
}

static void place(const md_system *s, size_t ghost)
{
    const md_ghost g = s->ghost[ghost];
    double *const x = s->now.x + 4 * (s->now.n + ghost);
    const double *const from = s->now.x + 4 * (size_t)g.source;
    x[0] = from[0] + (g.side % 3 - 1) * s->box[0];
    x[1] = from[1] + (g.side / 3 % 3 - 1) * s->box[1];
    x[2] = from[2] + (g.side / 9 - 1) * s->box[2];
}

static void follow(md_system *s, md_worker *w)
{
    for (size_t g = w->ghosts.begin; g < w->ghosts.end; g++)
        place(s, g);
    md_barrier(*w);
}

/* Those of a worker's atoms are its own, too. */
static void renew(md_system *s, md_worker *w)
{
    int32_t side[8];
    size_t count = 0, first = 0, all = 0;
    for (size_t i = 4 * w->own.begin; i < 4 * w->own.end; i += 4) {
        double *const x = s->now.x + i;
        for (int d = 0; d < 3; d++) {
            x[d] -= s->box[d] * floor(x[d] / s->box[d]);
            x[d] = x[d] < s->box[d] ? x[d] : 0;
        }
        count += (size_t)sides_of(s, x, side);
    }
    s->of_thread[w->thread].value = (double)count;
    md_barrier(*w);
    for (int t = 0; t < w->threads; t++) {
        first += t < w->thread ? (size_t)s->of_thread[t].value : 0;
        all += (size_t)s->of_thread[t].value;
    }
    if (s->now.n + all > s->room) {
        pl_tell_wrong("the system has collapsed");
        pl_fail("%zu atoms near the faces: the system has collapsed; do not use this build", all);
    }
    w->ghosts = (pl_range){first, first + count};
    for (size_t i = w->own.begin; i < w->own.end; i++)
        for (int k = 0, sides = sides_of(s, s->now.x + 4 * i, side); k < sides; k++)
            s->ghost[first++] = (md_ghost){(uint32_t)i, side[k]};
    if (w->thread == 0)
        s->now.ghosts = all;
    follow(s, w);
}

static const md_boundary periodic = {renew, follow};

/* --- a pass ------------------------------------------------------------------------------------------------------------------ */

/* The crystal melts, by the team that touches it first. */
static void touch(const pl_case *c, int thread, int threads)
{
    md_system *const s = c->data;
    md_worker w = worker(c, thread, threads);
    for (size_t i = w.own.begin; i < w.own.end; i++) {
        s->now.x[4 * i + 3] = (double)i;
        s->v[4 * i + 3] = 0;
        md_lattice(edge_of(c), i, s->now.x + 4 * i);
        md_velocity(c->n, i, s->v + 4 * i);
        for (size_t d = 0; d < 4; d++)
            s->f[4 * i + d] = 0;
    }
    if (thread == 0) {
        s->now.n = s->start.n = c->n;
        for (size_t d = 0; d < 4; d++)
            s->now.x[4 * s->room + d] = s->start.x[4 * s->room + d] = 1e9;
    }
    md_barrier(w);
    md_advance(s, &periodic, md_full, false, &w, MD_MELT);
    renew(s, &w);
    const pl_range ghosts = pl_part(s->now.ghosts, thread, threads);
    const size_t at = 4 * w.own.begin, bytes = 4 * (w.own.end - w.own.begin) * sizeof(double), beyond = 4 * (c->n + ghosts.begin);
    memcpy(s->start.x + at, s->now.x + at, bytes);
    memcpy(s->start_v + at, s->v + at, bytes);
    memcpy(s->start.x + beyond, s->now.x + beyond, 4 * (ghosts.end - ghosts.begin) * sizeof(double));
    if (thread == 0)
        s->start.ghosts = s->now.ghosts;
    md_barrier(w);
    md_build(s, &s->start, w);
}

/* A narrowed pass has a part of the thread's atoms and leaves the others, and the cells, as they are at the start: the same work for each
 * atom, on data that stay in the caches. */
static void run_narrowed(const pl_case *c, const pl_plan *p, md_worker w)
{
    md_system *const s = c->data;
    md_begin(s, p->part);
    for (int step = 0; step <= MD_STEPS; step++) {
        if (step)
            md_drift(s, p->part);
        if (step % MD_EVERY == 0 && step < MD_STEPS)
            md_list(s, &s->start, p->part, w.own, is_half(c));
        if (is_half(c))
            memset(s->f + 4 * p->part.begin, 0, 4 * (p->part.end - p->part.begin) * sizeof *s->f);
        ((md_loop *)p->loop)(p->part, &s->lists, s->start.x, s->f);
        if (step)
            md_kick(s, p->part);
    }
}

static void plan(const pl_case *c, pl_plan *p) { p->part = pl_narrow(c, p->part); }

static void run(const pl_case *c, const pl_plan *p)
{
    md_worker w = worker(c, p->thread, c->threads);
    if (c->narrowed > 1) {
        run_narrowed(c, p, w);
        return;
    }
    md_begin(c->data, w.own);
    md_advance(c->data, &periodic, (md_loop *)p->loop, is_half(c), &w, MD_STEPS);
}

/* --- model --------------------------------------------------------------------------------------------------------------------- */

static pl_work work(const pl_case *c)
{
    const md_system *const s = c->data;
    return md_work((double)c->n, s ? (double)s->start.ghosts : 0, is_half(c));
}

/* --- proof --------------------------------------------------------------------------------------------------------------------- */

static void poison(const pl_case *c)
{
    md_system *const s = c->data;
    for (size_t i = 0; i < 4 * c->n; i++)
        s->now.x[i] = s->v[i] = s->f[i] = NAN;
}

static void one_process(double *x, size_t n) {}

static double verify(const pl_case *c) { return md_proof(c->data, one_process); }

static double tolerance(const pl_case *c) { return 1; }

/* JSON has no NaN. */
static pl_fact number(const char *name, double value)
{
    return (pl_fact){.name = name, .text = isfinite(value) ? NULL : "not a number", .number = value};
}

static void facts(const pl_case *c, pl_fact *found)
{
    const md_system *const s = c->data;
    double before, momentum[3];
    const double after = md_energies(s, &before, momentum, one_process);
    found[0] = (pl_fact){.name = "steps", .number = MD_STEPS};
    found[1] = number("energy", before / (double)c->n);
    found[2] = number("energy_drift", (after - before) / (double)c->n);
    found[3] = (pl_fact){.name = "ghosts", .number = (double)s->start.ghosts};
}

static const pl_kernel md = {
    .name = "md", .title = "Molecular dynamics, Lennard-Jones; --size is cells of 4 atoms along an edge of the box",
    .variants = variants, .usual_size = 20, .elements = elements, .footprint = footprint, .create = create,
    .touch = touch, .plan = plan, .narrows = true, .run = run, .work = work, .verify = verify, .tolerance = tolerance,
    .poison = poison, .buffers = pl_first_buffers, .destroy = md_destroy, .facts = facts,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &md); }
