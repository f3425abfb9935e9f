/* All communication of SP: the edges of blocks, in one message for a side; lines, in buffers of `rows` row segments. */
#include <string.h>

#include "sp.h"

enum { EDGE_TAG = 1, TRANSPOSE_TAG = 3, STREAM_TAG = 4 };

/* --- edges ------------------------------------------------------------------------------------------------------- */

static size_t face_words(const sp *s, int axis)
{
    return (size_t)(SP_EDGE * SP_COMPONENTS * (s->points / s->n[axis]));
}

/* The layers of a face from `layer` on, to or from a message. */
static void copy_face(const sp *s, double *const *array, int axis, int layer, double *face, bool out)
{
    int begin[SP_AXES] = {0}, end[SP_AXES];
    memcpy(end, s->n, sizeof end);
    begin[axis] = layer;
    end[axis] = layer + SP_EDGE;
    for (int m = 0; m < SP_COMPONENTS; m++)
        for (int z = begin[2]; z < end[2]; z++)
            for (int y = begin[1]; y < end[1]; y++) {
                double *const row = sp_at(s, array, m, begin[0], y, z);
                const int count = end[0] - begin[0];
                for (int x = 0; x < count; x++)
                    if (out)
                        face[x] = row[x];
                    else
                        row[x] = face[x];
                face += count;
            }
}

/* Zero on the wall, and odd about it: values and second derivatives vanish there. */
static void reflect(const sp *s, double *const *array, int axis, int side)
{
    int at[SP_AXES], end[SP_AXES];
    memcpy(end, s->n, sizeof end);
    end[axis] = 1;
    const int inside = side ? s->n[axis] - 1 : 0;
    const ptrdiff_t outwards = side ? s->step[axis] : -s->step[axis];
    for (int m = 0; m < SP_COMPONENTS; m++)
        for (at[2] = 0; at[2] < end[2]; at[2]++)
            for (at[1] = 0; at[1] < end[1]; at[1]++)
                for (at[0] = 0; at[0] < end[0]; at[0]++) {
                    double *const last = sp_at(s, array, m, at[0], at[1], at[2]) + inside * s->step[axis];
                    last[outwards] = 0;
                    last[2 * outwards] = -*last;
                }
}

void sp_exchange_edges(sp *s, double *const *array)
{
    app *const a = s->app;
    MPI_Request request[4 * SP_AXES];
    int count = 0;
    for (int axis = 0; axis < SP_AXES; axis++)
        for (int side = 0; side < 2; side++)
            if (s->neighbour[axis][side] != MPI_PROC_NULL)
                app_start_receive(a, a->world, s->face[axis][side][1], face_words(s, axis), s->neighbour[axis][side],
                                  EDGE_TAG + !side, &request[count++]);
    for (int axis = 0; axis < SP_AXES; axis++)
        for (int side = 0; side < 2; side++) {
            if (s->neighbour[axis][side] == MPI_PROC_NULL) {
                reflect(s, array, axis, side);
                continue;
            }
            copy_face(s, array, axis, side ? s->n[axis] - SP_EDGE : 0, s->face[axis][side][0], true);
            app_start_send(a, a->world, s->face[axis][side][0], face_words(s, axis), s->neighbour[axis][side],
                           EDGE_TAG + side, &request[count++]);
        }
    app_finish(a, count, request);
    for (int axis = 0; axis < SP_AXES; axis++)
        for (int side = 0; side < 2; side++)
            if (s->neighbour[axis][side] != MPI_PROC_NULL)
                copy_face(s, array, axis, side ? s->n[axis] : -SP_EDGE, s->face[axis][side][1], false);
}

/* --- lines ------------------------------------------------------------------------------------------------------- */

/* A message of so many row segments: what the lengths of table 13 are of. */
static size_t words(sp *s, long segments, size_t segment)
{
    const size_t n = (size_t)segments * segment;
    const double bytes = (double)(n * sizeof(double));
    s->shortest = n && (s->shortest == 0 || bytes < s->shortest) ? bytes : s->shortest;
    s->longest = bytes > s->longest ? bytes : s->longest;
    return n;
}

/* --- transposed: parts of lines for whole lines ------------------------------------------------------------------- */

ptrdiff_t sp_line_origin(const sp_axis *x, int line) { return line % x->across * x->over + line / x->across * x->below; }

/* Batches of SP_LANES, the last one of what is left. */
int sp_lanes(const sp_axis *x, int line)
{
    const int begin = (line - x->begin) / SP_LANES * SP_LANES + x->begin;
    return x->end - begin < SP_LANES ? x->end - begin : SP_LANES;
}

double *sp_line_value(const sp_axis *x, int line, int m)
{
    const int mine = line - x->begin, lane = mine % SP_LANES, lanes = sp_lanes(x, line);
    const size_t before = sp_lines_room(mine - lane, x->whole, SP_COMPONENTS);
    return x->lines + before + sp_lines_room(lanes, x->whole, m) + SP_EDGE * lanes + lane;
}

/* The lines that a rank of the row solves. */
void sp_lines_of(const sp_axis *x, int rank, int *begin, int *end)
{
    const long lines = (long)x->across * x->down;
    *begin = (int)(lines * rank / x->ranks);
    *end = (int)(lines * (rank + 1) / x->ranks);
}

static void copy(int count, const double *from, ptrdiff_t every, double *to, ptrdiff_t other)
{
    for (int i = 0; i < count; i++)
        to[i * other] = from[i * every];
}

/* Row segments `from` to `end` of the lines from `line` on: five of each line, its components.  They stand in the block
 * (`in_block`) or are the part of rank `part` in the whole lines. */
static void copy_segments(sp *s, const sp_axis *x, bool in_block, int line, int part, long from, long end, double *message,
                          bool out)
{
    for (long i = from; i < end; i++, message += x->length) {
        const int which = line + (int)(i / SP_COMPONENTS), m = (int)(i % SP_COMPONENTS);
        const ptrdiff_t every = in_block ? x->along : sp_lanes(x, which);
        double *const values = in_block ? s->du[m] + sp_line_origin(x, which)
                                        : sp_line_value(x, which, m) + part * x->length * every;
        if (out)
            copy(x->length, values, every, message, 1);
        else
            copy(x->length, message, 1, values, every);
    }
}

static long least(long a, long b) { return a < b ? a : b; }

/* One partner's lines out, another partner's parts in; or the way back.  One buffer at a time, each waited for. */
static void exchange_lines(sp *s, sp_axis *x, int to, int from, bool back)
{
    int begin, end;
    sp_lines_of(x, back ? from : to, &begin, &end);
    const long theirs = (long)SP_COMPONENTS * (end - begin), mine = (long)SP_COMPONENTS * (x->end - x->begin);
    const long sent = back ? mine : theirs, received = back ? theirs : mine, rows = s->chosen.rows;
    const int first_out = back ? x->begin : begin, first_in = back ? begin : x->begin;
    for (long at = 0; at < sent || at < received; at += rows) {
        const long out = at < sent ? least(rows, sent - at) : 0, in = at < received ? least(rows, received - at) : 0;
        const size_t n = words(s, out, (size_t)x->length), m = words(s, in, (size_t)x->length);
        copy_segments(s, x, !back, first_out, to, at, at + out, s->out, true);
        app_copied(s->app, n);
        if (n && m)
            app_exchange(s->app, x->row, s->out, n, to, s->in, m, from, TRANSPOSE_TAG);
        else if (n)
            app_send(s->app, x->row, s->out, n, to, TRANSPOSE_TAG);
        else
            app_receive(s->app, x->row, s->in, m, from, TRANSPOSE_TAG);
        copy_segments(s, x, back, first_in, from, at, at + in, s->in, false);
        app_copied(s->app, m);
    }
}

void sp_transpose(sp *s, sp_axis *x, bool back)
{
    for (int line = x->begin; line < x->end; line++)
        for (int m = 0; m < SP_COMPONENTS; m++) {
            double *const part = s->du[m] + sp_line_origin(x, line);
            const ptrdiff_t every = sp_lanes(x, line);
            double *const whole = sp_line_value(x, line, m) + x->rank * x->length * every;
            if (back)
                copy(x->length, whole, every, part, x->along);
            else
                copy(x->length, part, x->along, whole, every);
        }
    for (int away = 1; away < x->ranks; away++)
        exchange_lines(s, x, (x->rank + away) % x->ranks, (x->rank - away + x->ranks) % x->ranks, back);
}

/* --- pipelined: a stream of row segments to the next rank --------------------------------------------------------- */

static sp_stream stream(sp *s, const sp_axis *x, int away, int each, int tag)
{
    return (sp_stream){.s = s, .row = x->row, .peer = x->rank + away, .tag = tag, .segment = (size_t)x->across,
                       .left = (long)each * x->down};
}

sp_stream sp_stream_to(sp *s, const sp_axis *x, int away, int each)
{
    return stream(s, x, away, each, STREAM_TAG + (away > 0));
}

sp_stream sp_stream_from(sp *s, const sp_axis *x, int away, int each)
{
    return stream(s, x, away, each, STREAM_TAG + (away < 0));
}

void sp_put(sp_stream *t, double *segment)
{
    sp *const s = t->s;
    memcpy(s->out + (size_t)t->held * t->segment, segment, t->segment * sizeof *segment);
    t->held++;
    t->left--;
    if (t->held < s->chosen.rows && t->left)
        return;
    app_send(s->app, t->row, s->out, words(s, t->held, t->segment), t->peer, t->tag);
    t->held = 0;
}

void sp_get(sp_stream *t, double *segment)
{
    sp *const s = t->s;
    if (t->taken == t->held) {
        t->held = least(s->chosen.rows, t->left);
        t->taken = 0;
        app_receive(s->app, t->row, s->in, words(s, t->held, t->segment), t->peer, t->tag);
    }
    memcpy(segment, s->in + (size_t)t->taken * t->segment, t->segment * sizeof *segment);
    t->taken++;
    t->left--;
}
