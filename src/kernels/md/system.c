/* The crystal, its memory and its motion. */
#include <math.h>
#include <stdlib.h>

#include "md.h"

enum { LEAST = 4 };     /* a box is wider than two reaches */

size_t md_atoms(size_t edge, size_t most)
{
    if (edge < LEAST || edge > most)
        pl_fail("--size %zu: cells of the crystal along an edge of the box: give from %d to %zu", edge, LEAST, most);
    return 4 * edge * edge * edge;
}

size_t md_edge(size_t atoms) { return (size_t)rint(cbrt((double)atoms / 4)); }

double md_lattice(size_t edge, size_t atom, double x[3])
{
    static const double site[4][3] = {{0, 0, 0}, {0.5, 0.5, 0}, {0.5, 0, 0.5}, {0, 0.5, 0.5}};
    const double a = cbrt(4 / MD_DENSITY);
    const size_t cell = atom / 4, at[3] = {cell % edge, cell / edge % edge, cell / edge / edge};
    for (int d = 0; d < 3; d++)
        x[d] = a * ((double)at[d] + site[atom % 4][d] + 0.25);
    return a;
}

/* Uniform numbers from -1/2 to 1/2, as 32 bits: sums of them are exact. */
static double uniform(size_t atom, size_t d) { return (double)(pl_random_bits(3 * atom + d) >> 32) / 0x1p32 - 0.5; }

void md_velocity(size_t all, size_t atom, double v[3])
{
    static size_t known;
    static double mean[3], scale;
    if (known != all) {         /* before the team begins, and the same for whoever asks */
        double squares = 0;
        for (size_t d = 0; d < 3; d++) {
            double sum = 0, square = 0;
            for (size_t i = 0; i < all; i++) {
                sum += uniform(i, d);
                square += uniform(i, d) * uniform(i, d);
            }
            mean[d] = sum / (double)all;
            squares += square - sum * mean[d];
        }
        scale = sqrt(MD_TEMPERATURE * 3 * (double)all / squares);
        known = all;
    }
    for (size_t d = 0; d < 3; d++)
        v[d] = scale * (uniform(atom, d) - mean[d]);
}

/* Of an atom, within a distance. */
static double neighbours(double distance) { return 4.0 / 3 * 3.14159265358979 * MD_DENSITY * distance * distance * distance; }

enum { X, START_X, V, START_V, F, BEGIN, START_BEGIN, ENTRY, START_ENTRY, GHOST, CELL_OF, CURSOR, LIST, COUNT, MUTUAL, NEIGHBOUR, BUFFERS };

typedef struct { size_t own, all, cells; } places;

/* Room for what moves in, and for fluctuations of the density. */
static places places_of(double n, const double edge[3], int cells[3])
{
    double volume = 1, with_ghosts = 1;
    places p = {.cells = 1};
    for (int d = 0; d < 3; d++) {
        volume *= edge[d];
        with_ghosts *= edge[d] + 2 * MD_REACH;
        cells[d] = (int)(edge[d] / (MD_REACH / MD_LAYERS)) + 2 * MD_LAYERS;
        p.cells *= (size_t)cells[d];
    }
    p.own = (size_t)(1.2 * n) + 200;
    p.all = p.own + (size_t)(1.2 * n * (with_ghosts / volume - 1)) + 500;
    return p;
}

static size_t bytes_of(const places *p, size_t bytes[BUFFERS])
{
    const size_t quad = 4 * sizeof(double), own = p->own, all = p->all + 1;      /* and one that is far away */
    const size_t of[BUFFERS] = {
        [X] = all * quad, [START_X] = all * quad, [V] = own * quad, [START_V] = own * quad, [F] = own * quad,
        [BEGIN] = (p->cells + 1) * sizeof(uint32_t), [START_BEGIN] = (p->cells + 1) * sizeof(uint32_t),
        [ENTRY] = all * sizeof(md_entry), [START_ENTRY] = all * sizeof(md_entry), [GHOST] = all * sizeof(md_ghost),
        [CELL_OF] = all * sizeof(uint32_t), [CURSOR] = p->cells * sizeof(uint32_t), [LIST] = own * sizeof(uint64_t),
        [COUNT] = own * sizeof(int32_t), [MUTUAL] = own * sizeof(int32_t),
        [NEIGHBOUR] = (own * MD_MOST + MD_PAD) * sizeof(int32_t)};
    size_t sum = 0;
    for (int i = 0; i < BUFFERS; i++) {
        bytes[i] = of[i];
        sum += of[i];
    }
    return sum;
}

/* What is touched in a pass. */
size_t md_footprint(size_t n, const double edge[3])
{
    int cells[3];
    size_t bytes[BUFFERS];
    const places p = places_of((double)n, edge, cells);
    const double used = neighbours(MD_REACH) + MD_PAD / 2;
    return bytes_of(&p, bytes) - bytes[NEIGHBOUR] + (size_t)((double)n * used * sizeof(int32_t));
}

md_system *md_create(const pl_case *c, size_t all, double n, const double box[3], const double low[3], const double edge[3])
{
    md_system *const s = pl_allocate(sizeof *s, "the atoms");
    size_t bytes[BUFFERS];
    const places p = places_of(n, edge, s->cells);
    bytes_of(&p, bytes);
    s->buffers = pl_buffers_create(c, BUFFERS, bytes, NULL);
    void *const *at = s->buffers->at;
    s->all = all;
    s->room = p.all;
    s->own_room = p.own;
    for (int d = 0; d < 3; d++) {
        s->box[d] = box[d];
        s->low[d] = low[d];
        s->edge[d] = edge[d];
    }
    s->now = (md_image){.x = at[X], .begin = at[BEGIN], .entry = at[ENTRY]};
    s->start = (md_image){.x = at[START_X], .begin = at[START_BEGIN], .entry = at[START_ENTRY]};
    s->v = at[V];
    s->start_v = at[START_V];
    s->f = at[F];
    s->ghost = at[GHOST];
    s->cell_of = at[CELL_OF];
    s->cursor = at[CURSOR];
    s->lists = (md_lists){at[LIST], at[COUNT], at[MUTUAL], at[NEIGHBOUR]};
    s->of_thread = pl_results_create();
    return s;
}

void md_destroy(void *data)
{
    md_system *const s = data;
    pl_buffers_destroy(s->buffers);
    free(s->of_thread);
    free(s);
}

void md_drift(md_system *s, pl_range own)
{
    for (size_t i = 4 * own.begin; i < 4 * own.end; i++) {
        s->v[i] += 0.5 * MD_STEP * s->f[i];
        s->now.x[i] += MD_STEP * s->v[i];
    }
}

void md_kick(md_system *s, pl_range own)
{
    for (size_t i = 4 * own.begin; i < 4 * own.end; i++)
        s->v[i] += 0.5 * MD_STEP * s->f[i];
}

void md_begin(md_system *s, pl_range own)
{
    const size_t at = 4 * own.begin, bytes = 4 * (own.end - own.begin) * sizeof(double);
    memcpy(s->now.x + at, s->start.x + at, bytes);
    memcpy(s->v + at, s->start_v + at, bytes);
}

void md_advance(md_system *s, const md_boundary *boundary, md_loop *loop, bool half, md_worker *w, int steps)
{
    for (int step = 0; step <= steps; step++) {
        if (step)
            md_drift(s, w->own);
        if (step % MD_EVERY == 0 && (step < steps || !step)) {
            boundary->renew(s, w);
            md_build(s, &s->now, *w);
            md_list(s, &s->now, w->own, w->own, half);
        } else {
            boundary->follow(s, w);
        }
        if (half)
            memset(s->f + 4 * w->own.begin, 0, 4 * (w->own.end - w->own.begin) * sizeof *s->f);
        loop(w->own, &s->lists, s->now.x, s->f);
        if (step)
            md_kick(s, w->own);
        md_barrier(*w);    /* before somebody moves what others read */
    }
}

/* Operations by definition, the same for all variants: 8 for the distance of each neighbour in a full list, 13 for the force of one that is
 * nearer than the cutoff.  Bytes of a step: an atom's list; its position for the forces, and those of ghosts; position, velocity and force
 * to move it, and again to end the step. */
pl_work md_work(double n, double ghosts, bool half)
{
    const double quad = 4 * sizeof(double), steps = MD_STEPS + 1, builds = MD_STEPS / MD_EVERY;
    const double list = ((half ? 0.5 : 1) * neighbours(MD_REACH) + (MD_PAD - 1) / 2.0) * sizeof(int32_t) + 16;
    const double read = steps * (n * list + (n + ghosts) * quad + n * 5 * quad) + builds * (n + ghosts) * sizeof(md_entry);
    const double forces = steps * n * quad, changed = steps * n * 3 * quad, lists = builds * (n * list + (n + ghosts) * sizeof(md_entry));
    return (pl_work){.load_bytes = read, .store_bytes = forces + changed + lists,
                     .flops = steps * n * (8 * neighbours(MD_REACH) + 13 * neighbours(MD_CUTOFF)),
                     .fetched_bytes = read, .written_bytes = forces + lists, .updated_bytes = changed,
                     .source = "model: an atom's list of 4 bytes per neighbour; positions, velocities and forces of 32 bytes once for each loop"};
}
