/* Molecular dynamics on several processes as the runtime sees it: a pass is MD_STEPS steps of all of them together. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "exchange.h"
#include "runtime.h"

static const pl_variant variants[] = {
    {"full", .loop = (pl_loop)md_full, .about = "each pair twice, once for each atom, as the compiler makes it"},
    {"half", .loop = (pl_loop)md_half, .about = "each pair of a process's atoms once, as the compiler makes it"},
    PL_WIDEST_AVX("simd", md_full_simd, .about = "full, vectors of neighbours")
    {0},
};

static bool is_half(const pl_case *c) { return c->variant->loop == (pl_loop)md_half; }

enum { WORKING };

static const pl_parameter parameters[] = {[WORKING] = PL_WORKING_PARAMETER, {0}};

enum { MOST = 800 };      /* a list's indices have 32 bits */

static size_t elements(const pl_case *c) { return md_atoms(c->n, MOST); }

static int working_of(const pl_case *c) { return pl_working(c->parameters[WORKING]); }

static size_t edge_of(const pl_case *c) { return md_edge(c->n); }

/* Edges of the box and of a process's part of it. */
static void cut(const pl_case *c, const int grid[3], double box[3], double edge[3])
{
    double x[3];
    for (int d = 0; d < 3; d++) {
        box[d] = (double)edge_of(c) * md_lattice(edge_of(c), 0, x);
        edge[d] = box[d] / grid[d];
    }
}

static void check(const pl_case *c)
{
    int grid[3];
    double box[3], edge[3];
    pl_check_working(c->parameters[WORKING]);
    md_grid(working_of(c), grid);
    cut(c, grid, box, edge);
    for (int d = 0; d < 3; d++)
        if (edge[d] < MD_REACH)
            pl_fail("--size %zu: on %d x %d x %d processes a part of the box is %.1f wide, and forces reach %.1f: give a larger size or fewer "
                    "processes", edge_of(c), grid[0], grid[1], grid[2], edge[d], MD_REACH);
}

static double part_of(const pl_case *c) { return (double)c->n / working_of(c); }

static size_t footprint(const pl_case *c)
{
    int grid[3];
    double box[3], edge[3];
    if (!pl_works(c->parameters[WORKING]))
        return 0;
    md_grid(working_of(c), grid);
    cut(c, grid, box, edge);
    return md_footprint((size_t)part_of(c), edge);
}

static void *create(const pl_case *c)
{
    md_process *const p = pl_allocate(sizeof *p, "the process");
    double box[3], low[3], edge[3], v[3];
    if (!md_open(p, MPI_COMM_WORLD, working_of(c)))
        return p;
    cut(c, p->grid, box, edge);
    for (int d = 0; d < 3; d++)
        low[d] = p->at[d] * edge[d];
    md_velocity(c->n, 0, v);
    /* A grid's cut may hold a layer of the crystal more than its share. */
    double room = 1;
    for (int d = 0; d < 3; d++)
        room *= 1 + 1.7 / edge[d];
    p->system = md_create(c, c->n, part_of(c) * room, box, low, edge);
    md_prepare(p);
    return p;
}

static void destroy(void *data)
{
    md_process *const p = data;
    if (p->works) {
        md_destroy(p->system);
        md_close(p);
    }
    free(p);
}

/* --- a pass ------------------------------------------------------------------------------------------------------------------ */

static md_process *running;     /* of this process there is one at a time */

static void renew(md_system *s, md_worker *w)
{
    md_exchange(running);
    w->own = (pl_range){0, s->now.n};
}

static void follow(md_system *s, md_worker *w) { md_follow(running); }

static const md_boundary neighbours = {renew, follow};

static void advance(md_process *p, md_loop *loop, bool half, int steps)
{
    md_worker w = {.threads = 1, .own = {0, p->system->now.n}};
    running = p;
    md_advance(p->system, &neighbours, loop, half, &w, steps);
}

static void touch(const pl_case *c, int thread, int threads)
{
    md_process *const p = c->data;
    md_system *const s = p->system;
    md_worker w = {.threads = 1};
    size_t n = 0;
    if (thread || !p->works)
        return;
    for (size_t i = 0; i < c->n; i++) {
        double x[3];
        bool own = true;
        md_lattice(edge_of(c), i, x);
        for (int d = 0; d < 3; d++)
            own &= (int)(x[d] / s->edge[d]) == p->at[d];
        if (!own)
            continue;
        memcpy(s->now.x + 4 * n, x, sizeof x);
        md_velocity(c->n, i, s->v + 4 * n);
        s->now.x[4 * n + 3] = (double)i;
        s->v[4 * n + 3] = 0;
        n++;
    }
    for (size_t i = 0; i < 4 * s->own_room; i++)
        s->f[i] = 0;
    for (size_t d = 0; d < 4; d++)
        s->now.x[4 * s->room + d] = s->start.x[4 * s->room + d] = 1e9;
    s->now.n = n;
    advance(p, md_full, false, MD_MELT);
    running = p;
    renew(s, &w);
    s->start.n = s->now.n;
    s->start.ghosts = s->now.ghosts;
    memcpy(s->start.x, s->now.x, 4 * (s->now.n + s->now.ghosts) * sizeof *s->now.x);
    memcpy(s->start_v, s->v, 4 * s->now.n * sizeof *s->v);
    md_build(s, &s->start, w);
    p->migrated = 0;
}

static void run(const pl_case *c, const pl_plan *plan)
{
    md_process *const p = c->data;
    if (!p->works)
        return;
    p->system->now.n = p->system->start.n;
    md_begin(p->system, (pl_range){0, p->system->now.n});
    advance(p, (md_loop *)plan->loop, is_half(c), MD_STEPS);
}

static double communication(const pl_case *c) { return app_communication_among(&((md_process *)c->data)->app, pl_processes.ranks); }

/* Of all processes that work; the ghosts as many for each as for this one. */
static pl_work work(const pl_case *c)
{
    const md_process *const p = c->data;
    return md_work((double)c->n, p->works ? (double)p->system->start.ghosts * working_of(c) : 0, is_half(c));
}

/* --- proof --------------------------------------------------------------------------------------------------------------------- */

static void poison(const pl_case *c)
{
    md_process *const p = c->data;
    if (!p->works)
        return;
    for (size_t i = 0; i < 4 * p->system->own_room; i++)
        p->system->now.x[i] = p->system->v[i] = p->system->f[i] = NAN;
    app_reset(&p->app);
    p->migrated = 0;
    p->app.proving = true;
}

static void sum(double *x, size_t n) { MPI_Allreduce(MPI_IN_PLACE, x, (int)n, MPI_DOUBLE, MPI_SUM, running->app.world); }

static app_result pass;         /* of the verified one, with `value` the atoms that migrated */

static double verify(const pl_case *c)
{
    md_process *const p = c->data;
    if (!p->works)
        return 0;
    double migrated = p->migrated;
    running = p;
    p->app.proving = false;
    sum(&migrated, 1);
    pass = app_result_of(&p->app, 0, 0, 0);
    pass.value = migrated;
    return md_proof(p->system, sum);
}

static double tolerance(const pl_case *c) { return 1; }

static void facts(const pl_case *c, pl_fact *found)
{
    static char grid[40];
    const md_process *const p = c->data;
    snprintf(grid, sizeof grid, "%dx%dx%d", p->grid[0], p->grid[1], p->grid[2]);
    found[0] = (pl_fact){.name = "grid", .text = grid};
    found[1] = (pl_fact){.name = "steps", .number = MD_STEPS};
    found[2] = (pl_fact){.name = "ghosts", .number = (double)p->system->start.ghosts};
    found[3] = (pl_fact){.name = "migrated", .number = pass.value};
    found[4] = (pl_fact){.name = "messages", .number = pass.messages};
    found[5] = (pl_fact){.name = "message_bytes", .number = pass.bytes};
}

static pl_buffers *buffers(const pl_case *c)
{
    const md_process *const p = c->data;
    return p->works ? p->system->buffers : NULL;
}

static const pl_kernel md = {
    .name = "md", .title = "Molecular dynamics on a 3-D grid of processes; --size is cells of 4 atoms along an edge of the box",
    .variants = variants, .parameters = parameters, .most_threads = 1, .usual_size = 20, .elements = elements, .check = check, .footprint = footprint,
    .create = create, .touch = touch, .run = run, .work = work, .verify = verify, .tolerance = tolerance, .poison = poison,
    .buffers = buffers, .destroy = destroy, .facts = facts, .communication = communication,
};

int main(int argc, char **argv) { return pl_mpi_main(argc, argv, &md); }
