/* The solver: a time step, and what it needs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sp.h"

/* --- the right-hand side ------------------------------------------------------------------------------------------ */

/* One component along a row of points, without what the pressure and the velocities do to each other: 28 flops. */
static void right_side(const sp *s, const double *u, const double *const *flow, const double *restrict cosine,
                       const double *restrict sine, double cos_t, double sin_t, double *restrict du)
{
    const double centre = s->k.centre, near = s->k.near, far = s->k.far;
    const double *restrict const x = flow[0], *restrict const y = flow[1], *restrict const z = flow[2];
    const ptrdiff_t row = s->step[1], plane = s->step[2];
    for (int i = 0; i < s->n[0]; i++) {
        const double *const c = u + i;
        const double around = c[-1] + c[1] + c[-row] + c[row] + c[-plane] + c[plane];
        const double farther = c[-2] + c[2] + c[-2 * row] + c[2 * row] + c[-2 * plane] + c[2 * plane];
        double sum = cos_t * cosine[i];
        sum += sin_t * sine[i];
        sum += centre * c[0];
        sum += near * around;
        sum += far * farther;
        sum -= x[i] * (c[1] - c[-1]);
        sum -= y[i] * (c[row] - c[-row]);
        sum -= z[i] * (c[plane] - c[-plane]);
        du[i] = sum;
    }
}

/* Pressure and velocities along a row: 16 flops. */
static void couple(const sp *s, const double *p, const double *u, const double *v, const double *w, double *restrict dp,
                   double *restrict du, double *restrict dv, double *restrict dw)
{
    const double sound = s->k.sound;
    const ptrdiff_t row = s->step[1], plane = s->step[2];
    for (int i = 0; i < s->n[0]; i++) {
        dp[i] -= sound * (u[i + 1] - u[i - 1] + (v[i + row] - v[i - row]) + (w[i + plane] - w[i - plane]));
        du[i] -= sound * (p[i + 1] - p[i - 1]);
        dv[i] -= sound * (p[i + row] - p[i - row]);
        dw[i] -= sound * (p[i + plane] - p[i - plane]);
    }
}

static void right_sides(sp *s)
{
    const double t = sp_frequency * (s->steps + 0.5) * s->k.dt, cos_t = cos(t), sin_t = sin(t);
    ptrdiff_t at = 0;
    for (int z = 0; z < s->n[2]; z++)
        for (int y = 0; y < s->n[1]; y++, at += s->n[0]) {
            const double *const flow[SP_AXES] = {s->flow[0] + at, s->flow[1] + at, s->flow[2] + at};
            const double *u[SP_COMPONENTS];
            for (int m = 0; m < SP_COMPONENTS; m++) {
                u[m] = sp_at(s, s->u, m, 0, y, z);
                right_side(s, u[m], flow, s->force_cos[m] + at, s->force_sin[m] + at, cos_t, sin_t, s->du[m] + at);
            }
            couple(s, u[0], u[1], u[2], u[3], s->du[0] + at, s->du[1] + at, s->du[2] + at, s->du[3] + at);
        }
    app_compute(s->app, (double)SP_FLOPS_RIGHT * (double)s->points);
}

/* --- one factor: the lines along an axis -------------------------------------------------------------------------- */

static void clear_rows(sp_lines *b, int row, bool coefficients)
{
    const size_t bytes = (size_t)b->lanes * SP_EDGE * sizeof(double);
    for (int m = 0; m < SP_COMPONENTS; m++)
        memset(b->value[m] + row * b->lanes, 0, bytes);
    for (int k = 0; k < SP_MATRICES && coefficients; k++) {
        memset(b->next[k] + row * b->lanes, 0, bytes);
        memset(b->after[k] + row * b->lanes, 0, bytes);
    }
}

/* Values between the block and lines from `line` on. */
static void copy_lines(sp *s, const sp_axis *x, sp_lines *b, int line, bool into_lines)
{
    ptrdiff_t origin[b->lanes];
    bool side_by_side = true;
    for (int l = 0; l < b->lanes; l++) {
        origin[l] = sp_line_origin(x, line + l);
        side_by_side &= origin[l] == origin[0] + l;
    }
    for (int m = 0; m < SP_COMPONENTS; m++)
        for (int i = 0; i < b->length; i++) {
            double *restrict const values = b->value[m] + i * b->lanes, *restrict const block = s->du[m] + i * x->along;
            if (side_by_side && into_lines)
                for (int l = 0; l < b->lanes; l++)
                    values[l] = block[origin[0] + l];
            else if (side_by_side)
                for (int l = 0; l < b->lanes; l++)
                    block[origin[0] + l] = values[l];
            else if (into_lines)
                for (int l = 0; l < b->lanes; l++)
                    values[l] = block[origin[l]];
            else
                for (int l = 0; l < b->lanes; l++)
                    block[origin[l]] = values[l];
        }
}

/* The parts of lines of one factor that are solved together, without their values. */
static sp_lines lines_at(const sp_axis *x, int lanes, int length, const double *flow, double *memory)
{
    sp_lines b = {.lanes = lanes, .length = length, .begins = length == x->whole || x->rank == 0,
                  .ends = length == x->whole || x->rank == x->ranks - 1, .flow = flow};
    sp_lines_place(&b, memory);
    return b;
}

/* Lines that are whole on this rank, or are made so. */
static void solve_whole(sp *s, int axis)
{
    sp_axis *const x = &s->axis[axis];
    const bool exchanged = x->ranks > 1;
    if (exchanged)
        sp_transpose(s, x, false);
    for (int line = x->begin; line < x->end; line += SP_LANES) {
        sp_lines b = lines_at(x, sp_lanes(x, line), x->whole, x->flow + (ptrdiff_t)(line - x->begin) * x->whole, s->scratch);
        for (int m = 0; m < SP_COMPONENTS && exchanged; m++)
            b.value[m] = sp_line_value(x, line, m);
        if (!exchanged)
            copy_lines(s, x, &b, line, true);
        clear_rows(&b, -SP_EDGE, true);
        clear_rows(&b, b.length, false);
        sp_to_characteristics(&b, axis);
        sp_eliminate(&s->k, &b, axis);
        sp_substitute(&b, axis);
        sp_from_characteristics(&b, axis);
        if (!exchanged)
            copy_lines(s, x, &b, line, false);
    }
    app_compute(s->app, (double)SP_FLOPS_LINES * (double)(x->end - x->begin) * x->whole);
    if (exchanged)
        sp_transpose(s, x, true);
}

/* Two rows of lines, to or from a neighbour: five components each, and with `coefficients` those of three matrices. */
static void hand_on(sp_stream *t, const sp_lines *b, int row, bool coefficients, void (*hand)(sp_stream *, double *))
{
    for (int i = row; i < row + SP_EDGE; i++) {
        for (int m = 0; m < SP_COMPONENTS; m++)
            hand(t, b->value[m] + i * b->lanes);
        for (int k = 0; k < SP_MATRICES && coefficients; k++) {
            hand(t, b->next[k] + i * b->lanes);
            hand(t, b->after[k] + i * b->lanes);
        }
    }
}

/* The rows of lines one after the other through the ranks: while the next one eliminates what it was handed, this one does
 * the row after it. */
static void solve_pipelined(sp *s, int axis)
{
    sp_axis *const x = &s->axis[axis];
    const size_t room = sp_lines_room(x->across, x->length, SP_LINE_ARRAYS);
    const ptrdiff_t flow = (ptrdiff_t)x->across * x->length;
    sp_stream in = sp_stream_from(s, x, -1, SP_CARRIED), out = sp_stream_to(s, x, +1, SP_CARRIED);
    const double each = (double)x->across * x->length;
    for (int row = 0; row < x->down; row++) {
        sp_lines b = lines_at(x, x->across, x->length, x->flow + row * flow, x->lines + (size_t)row * room);
        copy_lines(s, x, &b, row * x->across, true);
        sp_to_characteristics(&b, axis);
        if (b.begins)
            clear_rows(&b, -SP_EDGE, true);
        else
            hand_on(&in, &b, -SP_EDGE, true, sp_get);
        sp_eliminate(&s->k, &b, axis);
        app_compute(s->app, SP_FLOPS_FORTH * each);
        if (!b.ends)
            hand_on(&out, &b, b.length - SP_EDGE, true, sp_put);
    }
    in = sp_stream_from(s, x, +1, SP_RETURNED), out = sp_stream_to(s, x, -1, SP_RETURNED);
    for (int row = 0; row < x->down; row++) {
        sp_lines b = lines_at(x, x->across, x->length, x->flow + row * flow, x->lines + (size_t)row * room);
        if (b.ends)
            clear_rows(&b, b.length, false);
        else
            hand_on(&in, &b, b.length, false, sp_get);
        sp_substitute(&b, axis);
        if (!b.begins)
            hand_on(&out, &b, 0, false, sp_put);
        sp_from_characteristics(&b, axis);
        app_compute(s->app, SP_FLOPS_BACK * each);
        copy_lines(s, x, &b, row * x->across, false);
    }
}

static void add(sp *s)
{
    for (int m = 0; m < SP_COMPONENTS; m++) {
        const double *restrict du = s->du[m];
        for (int z = 0; z < s->n[2]; z++)
            for (int y = 0; y < s->n[1]; y++, du += s->n[0]) {
                double *restrict const u = sp_at(s, s->u, m, 0, y, z);
                for (int x = 0; x < s->n[0]; x++)
                    u[x] += du[x];
            }
    }
    app_compute(s->app, (double)SP_FLOPS_ADD * (double)s->points);
}

void sp_step(sp *s)
{
    sp_exchange_edges(s, s->u);
    right_sides(s);
    for (int axis = 0; axis < SP_AXES; axis++)
        if (s->chosen.pipelined && s->axis[axis].ranks > 1)
            solve_pipelined(s, axis);
        else
            solve_whole(s, axis);
    add(s);
    s->steps++;
}
