#include "slabs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UP_TAG = 1, DOWN_TAG, CROSSING = 5, LINE = 8, X = 0, Y = 1, Z = 2 };

const char *slabs_refusal(int ranks, size_t planes)
{
    return (size_t)ranks > planes ? "more processes than planes: give a larger size, or more --planes" : NULL;
}

static lbm_box own_box(const app *a, size_t n, size_t planes)
{
    const pl_range own = pl_part(planes, a->rank, a->ranks);
    return lbm_box_of(n, n, own.end - own.begin);
}

/* Of a population, one plane's rows, ghosts among them. */
static size_t length_of_plane(const lbm_box *box) { return (box->rows + 2) * box->row; }

/* Half a page between the two lattices, as in src/kernels/lbm. */
enum { APART = 256 };

size_t slabs_doubles(const app *a, size_t n, size_t planes)
{
    const lbm_box box = own_box(a, n, planes);
    return 2 * lbm_doubles(&box) + APART + 2 * CROSSING * length_of_plane(&box);
}

void slabs_create(slabs *s, app *a, size_t n, size_t planes, double *memory)
{
    *s = (slabs){.a = a, .box = own_box(a, n, planes), .first = pl_part(planes, a->rank, a->ranks).begin, .planes = planes, .in = memory};
    s->out = s->in + lbm_doubles(&s->box) + APART;
    s->leaves = s->out + lbm_doubles(&s->box);
    s->arrives = s->leaves + CROSSING * length_of_plane(&s->box);
}

void slabs_start(slabs *s)
{
    const lbm_box *const box = &s->box;
    for (size_t i = 0; i < lbm_doubles(box); i++)
        s->in[i] = s->out[i] = NAN;
    for (size_t k = 1; k <= box->planes; k++)
        for (size_t j = 1; j <= box->rows; j++)
            for (size_t i = 1; i <= box->n; i++)
                for (int q = 0; q < LBM_POPULATIONS; q++)
                    s->in[(size_t)q * box->apart + i + j * box->row + k * box->plane] =
                        lbm_value(lbm_weight(q), lbm_key(q, j, s->first + k), i);
}

/* The populations that move along z with `velocity`: from a plane to a buffer, or back. */
static void pack(const slabs *s, int velocity, size_t plane, double *buffer, bool back)
{
    const size_t length = length_of_plane(&s->box);
    for (int q = 0; q < LBM_POPULATIONS; q++)
        if (lbm_velocity[q][Z] == velocity) {
            double *const there = s->in + (size_t)q * s->box.apart + plane * s->box.plane;
            memcpy(back ? there : buffer, back ? buffer : there, length * sizeof(double));
            buffer += length;
        }
}

/* What moves up from the last plane arrives below the first one of the next rank, and what moves down above its last. */
static void exchange(slabs *s)
{
    app *const a = s->a;
    const size_t count = CROSSING * length_of_plane(&s->box);
    const int above = (a->rank + 1) % a->ranks, below = (a->rank + a->ranks - 1) % a->ranks;
    pack(s, 1, s->box.planes, s->leaves, false);
    app_exchange(a, a->world, s->leaves, count, above, s->arrives, count, below, UP_TAG);
    pack(s, 1, 0, s->arrives, true);
    pack(s, -1, 1, s->leaves, false);
    app_exchange(a, a->world, s->leaves, count, below, s->arrives, count, above, DOWN_TAG);
    pack(s, -1, s->box.planes + 1, s->arrives, true);
}

void slabs_step(slabs *s, lbm_loop *loop)
{
    const size_t rows = s->box.rows * s->box.planes;
    lbm_wrap(&s->box, s->in, X);
    lbm_wrap(&s->box, s->in, Y);
    if (s->a->ranks == 1)
        lbm_wrap(&s->box, s->in, Z);
    else
        exchange(s);
    loop(&s->box, 0, rows, s->out, s->in);
    app_compute(s->a, (double)LBM_FLOPS * (double)(rows * s->box.n));
    double *const done = s->out;
    s->out = s->in;
    s->in = done;
}

static double amplitude(const slabs *s, const lbm_vortex *vortex)
{
    double sum = lbm_vortex_cells(vortex, &s->box, s->first, NULL, s->in);
    app_sum(s->a, s->a->world, &sum, 1);
    return sum;
}

/* The plane of the vortex has the axis that is cut; the longer wave is along it, so that the velocity across is the smaller one. */
double slabs_viscosity(app *a, lbm_loop *loop)
{
    const size_t n = LBM_VORTEX_CELLS, planes = ((size_t)a->ranks + n - 1) / n * n;
    const lbm_vortex vortex = {Z, X, {n, n, planes}};
    slabs s;
    double begin = NAN,
           *const memory = app_memory(aligned_alloc(LINE * sizeof(double), (slabs_doubles(a, n, planes) / LINE + 2) * LINE * sizeof(double)));
    slabs_create(&s, a, n, planes, memory + LINE - 1);
    slabs_start(&s);
    lbm_vortex_cells(&vortex, &s.box, s.first, s.in, NULL);
    for (int step = 1; step <= LBM_VORTEX_END; step++) {
        slabs_step(&s, loop);
        if (step == LBM_VORTEX_BEGIN)
            begin = amplitude(&s, &vortex);
    }
    const double end = amplitude(&s, &vortex);
    free(memory);
    return lbm_viscosity(&vortex, begin, end);
}
