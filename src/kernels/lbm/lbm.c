/* The lattice Boltzmann step as the runtime sees it: its table of variants, its data, its model, its verification. */
#include <math.h>
#include <string.h>

#include "lattice.h"

static const pl_variant variants[] = {
    {"fused", PL_LOOP(lbm_fused), .about = "populations are collected and collide in one loop, as the compiler makes it"},
    {"split", PL_LOOP(lbm_split), .about = "fused, a loop that moves all populations and one in which they collide"},
    {"buffered", PL_LOOP(lbm_buffered), .about = "fused, by 64 cells through a buffer: one stream is written at a time"},
    PL_WIDEST("nt", lbm_nt, .nontemporal = true, .about = "buffered, non-temporal stores")
    {0},
};

enum { PLANES };

static const pl_parameter parameters[] = {
    [PLANES] = {"planes", 0, 1, "planes of cells; 0: as many as rows", .of_data = true},
    {0},
};

/* --- data ------------------------------------------------------------------------------------------------------ */

enum { IN, OUT, Q = LBM_POPULATIONS };

static size_t planes_of(const pl_case *c) { return c->parameters[PLANES] ? (size_t)c->parameters[PLANES] : c->n; }

static lbm_box box_of(const pl_case *c) { return lbm_box_of(c->n, c->n, planes_of(c)); }

static size_t rows_of(const pl_case *c) { return c->n * planes_of(c); }

static void check(const pl_case *c)
{
    if (2.0 * Q * (double)c->n * (double)c->n * (double)planes_of(c) * sizeof(double) > 1e15)
        pl_fail("--size %zu: is the edge of two lattices of %zu planes: give a smaller one, or fewer --planes", c->n, planes_of(c));
}

static size_t bytes_of_lattice(const pl_case *c)
{
    const lbm_box box = box_of(c);
    return lbm_doubles(&box) * sizeof(double);
}

static size_t footprint(const pl_case *c) { return 2 * bytes_of_lattice(c); }

/* The first cell of each row begins a cache line, as non-temporal stores need it; and half a page between the two lattices. */
static void *create(const pl_case *c)
{
    const size_t bytes = bytes_of_lattice(c), ghost = PL_LINE - sizeof(double);
    return pl_buffers_create(c, 2, (size_t[]){bytes, bytes}, (size_t[]){ghost, 2048 + ghost});
}

static double *lattice_of(const pl_case *c, int which) { return ((const pl_buffers *)c->data)->at[which]; }

static pl_range rows_of_thread(const pl_case *c, int thread, int threads) { return pl_narrow(c, pl_part(rows_of(c), thread, threads)); }

/* Ghosts go with the rows beside them; what pads a row is no number: nobody may read it. */
static void touch(const pl_case *c, int thread, int threads)
{
    const lbm_box box = box_of(c);
    const pl_range own = rows_of_thread(c, thread, threads);
    const size_t ends[] = {own.begin, own.end};
    size_t at[2];
    for (int e = 0; e < 2; e++)
        at[e] = (ends[e] / box.rows + 1) * box.plane + (ends[e] % box.rows + 1) * box.row;
    const size_t first = thread ? at[0] : 0, last = thread == threads - 1 ? box.apart : at[1];
    for (int q = 0; q < Q; q++) {
        double *const in = lattice_of(c, IN) + (size_t)q * box.apart, *const out = lattice_of(c, OUT) + (size_t)q * box.apart;
        for (size_t row = first, end; row < last; row = end) {
            const size_t k = row / box.plane, j = row % box.plane / box.row;
            const bool cells = k < box.planes + 2 && j < box.rows + 2;
            end = cells ? row + box.row : k < box.planes + 2 ? (k + 1) * box.plane : last;
            end = end < last ? end : last;
            const uint32_t mine = lbm_key(q, lbm_within(j, box.rows), lbm_within(k, box.planes));
            for (size_t i = 0; i < end - row; i++) {
                in[row + i] = cells && i < box.n + 2 ? lbm_value(lbm_weight(q), mine, lbm_within(i, box.n)) : NAN;
                out[row + i] = 0;
            }
        }
    }
}

/* --- the step and its model -------------------------------------------------------------------------------------- */

static void plan(const pl_case *c, pl_plan *p) { p->part = rows_of_thread(c, p->thread, c->threads); }

static void run(const pl_case *c, const pl_plan *p)
{
    const lbm_box box = box_of(c);
    ((lbm_loop *)p->loop)(&box, p->part.begin, p->part.end, lattice_of(c, OUT), lattice_of(c, IN));
}

/* Every population is loaded once and stored once, by whole lines of a row: those that move along x lie across one more.  split loads and
 * stores them once more, where they are. */
static pl_work work(const pl_case *c)
{
    const bool split = c->variant->loop == (pl_loop)lbm_split;
    const double cells = (double)c->n * (double)rows_of(c), lattice = Q * sizeof(double) * cells, loops = split ? 2 : 1;
    const size_t line = PL_LINE / sizeof(double), lines = 9 * ((c->n + line - 1) / line) + 5 * (1 + (c->n + line - 2) / line) + 5 * (c->n / line + 1);
    pl_work w = {.load_bytes = loops * lattice, .store_bytes = loops * lattice, .flops = LBM_FLOPS * cells, .places = split ? 0 : Q,
                 .source = split ? "model: 19 loads and 19 stores of 8 bytes per cell by each of two loops"
                                 : "model: 19 loads and 19 stores of 8 bytes per cell"};
    if (c->level == 1)
        return w;
    w.fetched_bytes = (double)(PL_LINE * lines) * (double)rows_of(c) + (split ? lattice : 0);
    w.written_bytes = lattice;
    w.updated_bytes = split ? lattice : 0;
    return w;
}

/* --- verification ------------------------------------------------------------------------------------------------ */

static void poison(const pl_case *c) { memset(lattice_of(c, OUT), 0xFF, bytes_of_lattice(c)); }     /* not a number */

/* A thread looks at its part of all rows: the cells are right; ghosts, padding and the input are as they were. */
static double verify_part(const pl_case *c, int thread)
{
    const lbm_box box = box_of(c);
    const pl_range part = pl_part((box.planes + 2) * (box.rows + 2), thread, c->threads);
    double worst = 0;
    for (size_t number = part.begin; number < part.end; number++) {
        const size_t k = number / (box.rows + 2), j = number % (box.rows + 2), row = k * box.plane + j * box.row;
        const bool inner = k > 0 && j > 0 && k <= box.planes && j <= box.rows;
        bool changed = false;
        for (int q = 0; q < Q; q++) {
            const double *const in = lattice_of(c, IN) + (size_t)q * box.apart + row, *const out = in + (lattice_of(c, OUT) - lattice_of(c, IN));
            const uint32_t mine = lbm_key(q, lbm_within(j, box.rows), lbm_within(k, box.planes));
            for (size_t i = 0; i < box.n + 2; i++)
                changed |= in[i] != lbm_value(lbm_weight(q), mine, lbm_within(i, box.n));
            for (size_t i = inner ? box.n + 1 : 1; i < box.row; i++)
                changed |= !pl_untouched(out + i);
            changed |= !pl_untouched(out);
        }
        worst = pl_worse(worst, changed ? INFINITY : inner ? lbm_error_of_row(&box, lattice_of(c, OUT) + row, j, k, box.planes) : 0);
    }
    return worst;
}

/* The viscosity, over theory's, of the variant's loop: the worst of vortices in three planes of a small box. */
static double viscosity(const pl_case *c)
{
    static double known[sizeof variants / sizeof *variants];
    double *const worst = &known[c->variant - variants];
    const size_t cells = LBM_VORTEX_CELLS;
    for (int a = *worst ? 3 : 0; a < 3; a++) {
        const lbm_vortex vortex = {a, (a + 1) % 3, {cells, cells, cells}};
        const double found = lbm_measured_viscosity(&vortex, (lbm_loop *)c->variant->loop);
        *worst = isnan(*worst) || (*worst && fabs(*worst - 1) > fabs(found - 1)) ? *worst : found;
    }
    return *worst;
}

static double verify(const pl_case *c) { return fabs(viscosity(c) - 1) <= LBM_VORTEX_TOLERANCE ? 0 : INFINITY; }

static double tolerance(const pl_case *c) { return LBM_TOLERANCE; }

/* For the record: what 0 stands for, and the physics. */
static void facts(const pl_case *c, pl_fact *found)
{
    found[0] = (pl_fact){"planes-used", NULL, (double)planes_of(c)};
    found[1] = (pl_fact){"viscosity", NULL, viscosity(c)};
}

static const pl_kernel lbm = {
    .name = "lbm", .title = "a time step of a lattice Boltzmann fluid, D3Q19, in a periodic box", .variants = variants,
    .parameters = parameters, .usual_size = 128, .check = check, .footprint = footprint, .create = create, .touch = touch, .plan = plan,
    .narrows = true, .run = run, .work = work, .verify = verify, .verify_part = verify_part, .tolerance = tolerance, .poison = poison,
    .buffers = pl_data_buffers, .destroy = pl_buffers_destroy, .facts = facts,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &lbm); }
