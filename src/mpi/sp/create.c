/* A rank's block and its memory, and the solution of time 0. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sp.h"

enum { LINE = 8 };      /* doubles of a cache line: where arrays begin */

/* --- geometry ------------------------------------------------------------------------------------------------------ */

/* The axes along and down which lines stand in rows. */
static int across_of(int axis) { return axis == 0 ? 1 : 0; }
static int down_of(int axis) { return axis == 2 ? 1 : 2; }

static sp_coefficients coefficients(int n)
{
    const double h = 1.0 / (n + 1), dt = 0.5 * h, viscous = dt * sp_viscosity / (h * h), fourth = dt * sp_fourth / h;
    return (sp_coefficients){
        .h = h, .dt = dt, .sound = dt * sp_sound / (2 * h), .centre = -6 * viscous - 18 * fourth,
        .near = viscous + 4 * fourth, .far = -fourth, .implicit_sound = dt * sp_sound / (4 * h),
        .beside = -(viscous + 4 * fourth) / 2, .beyond = fourth / 2,
        .diagonal = {1 + viscous + 3 * fourth, 1 + viscous + 2.5 * fourth, 1 + viscous + 2 * fourth}};
}

/* Distance of neighbours among the ranks: x runs fastest. */
static int apart(const sp_options *o, int axis)
{
    return axis == 0 ? 1 : axis == 1 ? o->ranks[0] : o->ranks[0] * o->ranks[1];
}

/* Where block `rank` lies, and its lines. */
static void lay_block(sp *s, int rank)
{
    const sp_options *const o = &s->chosen;
    ptrdiff_t points = 1, room = 1, along[SP_AXES];
    int at[SP_AXES];
    for (int a = 0; a < SP_AXES; a++) {
        at[a] = rank / apart(o, a) % o->ranks[a];
        s->n[a] = o->n / o->ranks[a];
        s->first[a] = at[a] * s->n[a];
        s->neighbour[a][0] = at[a] > 0 ? rank - apart(o, a) : MPI_PROC_NULL;
        s->neighbour[a][1] = at[a] < o->ranks[a] - 1 ? rank + apart(o, a) : MPI_PROC_NULL;
        along[a] = points;
        s->step[a] = room;
        points *= s->n[a];
        room *= s->n[a] + 2 * SP_EDGE;
    }
    s->points = points;
    s->room = room;
    for (int a = 0; a < SP_AXES; a++) {
        sp_axis *const x = &s->axis[a];
        *x = (sp_axis){.ranks = o->ranks[a], .rank = at[a], .length = s->n[a], .whole = o->n, .across = s->n[across_of(a)],
                       .down = s->n[down_of(a)], .along = along[a], .over = along[across_of(a)], .below = along[down_of(a)]};
        sp_lines_of(x, x->rank, &x->begin, &x->end);
    }
}

/* --- memory --------------------------------------------------------------------------------------------------------- */

/* The next `n` doubles of the memory; without memory they are only counted. */
static double *take(double *memory, size_t *used, size_t n)
{
    double *const here = memory ? memory + *used : NULL;
    *used += (n + LINE - 1) / LINE * LINE;
    return here;
}

static size_t most(size_t a, size_t b) { return a > b ? a : b; }

static bool is_pipelined(const sp *s, int axis) { return s->chosen.pipelined && s->axis[axis].ranks > 1; }

static size_t lay_memory(sp *s, double *memory)
{
    const size_t points = (size_t)s->points;
    size_t used = 0, batch = 0, message = 0;
    for (int m = 0; m < SP_COMPONENTS; m++) {
        s->u[m] = take(memory, &used, (size_t)s->room);
        s->du[m] = take(memory, &used, points);
        s->force_cos[m] = take(memory, &used, points);
        s->force_sin[m] = take(memory, &used, points);
    }
    for (int a = 0; a < SP_AXES; a++) {
        sp_axis *const x = &s->axis[a];
        const size_t lines = (size_t)(x->end - x->begin), face = SP_EDGE * SP_COMPONENTS * points / (size_t)x->length;
        s->flow[a] = take(memory, &used, points);
        x->flow = take(memory, &used, is_pipelined(s, a) ? points : lines * (size_t)x->whole);
        if (is_pipelined(s, a)) {
            x->lines = take(memory, &used, (size_t)x->down * sp_lines_room(x->across, x->length, SP_LINE_ARRAYS));
            message = most(message, SP_CARRIED * (size_t)x->across * (size_t)x->down);
        } else if (x->ranks > 1) {
            x->lines = take(memory, &used, sp_lines_room((int)lines, x->whole, SP_COMPONENTS));
            message = most(message, SP_COMPONENTS * (points + (size_t)x->length));
        }
        batch = most(batch, sp_lines_room(SP_LANES, x->whole, SP_LINE_ARRAYS));
        for (int side = 0; side < 2 && x->ranks > 1; side++)
            for (int way = 0; way < 2; way++)
                s->face[a][side][way] = take(memory, &used, face);
    }
    s->scratch = take(memory, &used, batch);
    s->out = take(memory, &used, message);
    s->in = take(memory, &used, message);
    return used * sizeof(double);
}

size_t sp_bytes(const sp_options *o, int rank)
{
    sp s = {.chosen = *o};
    lay_block(&s, rank);
    return lay_memory(&s, NULL);
}

sp *sp_create(app *a, const sp_options *o, void *memory)
{
    sp *const s = app_memory(calloc(1, sizeof *s));
    *s = (sp){.app = a, .chosen = *o, .k = coefficients(o->n), .all = memory};
    lay_block(s, a->rank);
    lay_memory(s, s->all);
    for (int axis = 0; axis < SP_AXES; axis++) {
        const int here = s->axis[axis].rank, row = a->rank - here * apart(o, axis);    /* its first rank */
        MPI_Comm_split(a->world, row, here, &s->axis[axis].row);
    }
    return s;
}

void sp_destroy(sp *s)
{
    for (int axis = 0; axis < SP_AXES; axis++)
        MPI_Comm_free(&s->axis[axis].row);
    free(s);
}

/* --- values of time 0 ------------------------------------------------------------------------------------------------- */

/* The flow along a line, or this block's part of it, as a quarter of dt U / h. */
static void fill_line(sp *s, int axis, int line, int from, int length, double *flow, int every)
{
    const sp_axis *const x = &s->axis[axis];
    int at[SP_AXES];
    at[across_of(axis)] = line % x->across;
    at[down_of(axis)] = line / x->across;
    for (int i = 0; i < length; i++) {
        double position[SP_AXES];
        at[axis] = from + i - s->first[axis];
        sp_position(s, at[0], at[1], at[2], position);
        flow[(ptrdiff_t)i * every] = s->k.dt * sp_flow(axis, position) / (4 * s->k.h);
    }
}

static void fill_lines(sp *s, int axis)
{
    const sp_axis *const x = &s->axis[axis];
    if (is_pipelined(s, axis)) {
        for (int line = 0; line < x->across * x->down; line++)
            fill_line(s, axis, line, s->first[axis], x->length,
                      x->flow + (ptrdiff_t)(line / x->across) * x->across * x->length + line % x->across, x->across);
        return;
    }
    for (int line = x->begin; line < x->end; line++) {
        const int lane = (line - x->begin) % SP_LANES;
        double *const batch = x->flow + (ptrdiff_t)(line - x->begin - lane) * x->whole;
        fill_line(s, axis, line, 0, x->whole, batch + lane, sp_lanes(x, line));
    }
}

void sp_start(sp *s)
{
    memset(s->all, 0, lay_memory(s, s->all));
    ptrdiff_t i = 0;
    for (int z = 0; z < s->n[2]; z++)
        for (int y = 0; y < s->n[1]; y++)
            for (int x = 0; x < s->n[0]; x++, i++) {
                double at[SP_AXES];
                sp_position(s, x, y, z, at);
                for (int m = 0; m < SP_COMPONENTS; m++) {
                    double cosine, sine;
                    sp_force(m, at, &cosine, &sine);
                    s->force_cos[m][i] = s->k.dt * cosine;
                    s->force_sin[m][i] = s->k.dt * sine;
                    *sp_at(s, s->u, m, x, y, z) = sp_exact(m, at, 0);
                }
                for (int a = 0; a < SP_AXES; a++)
                    s->flow[a][i] = s->k.dt * sp_flow(a, at) / (2 * s->k.h);
            }
    for (int axis = 0; axis < SP_AXES; axis++)
        fill_lines(s, axis);
    s->steps = 0;
    s->shortest = s->longest = 0;
}
