// The solver's loops with numbers that count what is done to them: operations per point of right_side(), couple(), of the
// lines there and back, and of add().
#include <mpi.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <stdbool.h>

static long operations;

struct counted {
    double x;
    counted() = default;
    counted(double value) : x(value) {}
};
static counted done(double x) { operations++; return counted(x); }
static counted operator+(counted a, counted b) { return done(a.x + b.x); }
static counted operator-(counted a, counted b) { return done(a.x - b.x); }
static counted operator*(counted a, counted b) { return done(a.x * b.x); }
static counted operator/(counted a, counted b) { return done(a.x / b.x); }
static counted operator-(counted a) { return counted(-a.x); }
static counted &operator+=(counted &a, counted b) { return a = a + b; }
static counted &operator-=(counted &a, counted b) { return a = a - b; }
static bool operator>(counted a, counted b) { return a.x > b.x; }
static counted cos(counted a) { return counted(cos(a.x)); }
static counted sin(counted a) { return counted(sin(a.x)); }

#define restrict __restrict
#define _Noreturn
#define double counted
extern "C" {
#include "app.h"
#include "sp.h"
}
#include "lines.c"
#include "sp.c"
#undef double

// What sp.c needs of the other files, and does not call here.
extern "C" {
const counted sp_frequency(2);
void app_compute(app *, counted) {}
void sp_exchange_edges(sp *, counted *const *) {}
void sp_transpose(sp *, sp_axis *, bool) {}
ptrdiff_t sp_line_origin(const sp_axis *, int) { return 0; }
int sp_lanes(const sp_axis *, int) { return 0; }
counted *sp_line_value(const sp_axis *, int, int) { return NULL; }
sp_stream sp_stream_to(sp *, const sp_axis *, int, int) { return sp_stream(); }
sp_stream sp_stream_from(sp *, const sp_axis *, int, int) { return sp_stream(); }
void sp_put(sp_stream *, counted *) {}
void sp_get(sp_stream *, counted *) {}
}

static long since() { const long n = operations; operations = 0; return n; }

int main()
{
    enum { N = 6, ROW = N + 4, ROOM = ROW * ROW * ROW, LANES = 5 };
    static counted u[5][ROOM], out[5][N * N * N], other[N], lines[11 * (N + 4) * LANES], flow[N * LANES];
    sp s = sp();
    for (int a = 0; a < 3; a++)
        s.n[a] = N;
    s.points = N * N * N;
    s.step[0] = 1, s.step[1] = ROW, s.step[2] = ROW * ROW;
    for (int m = 0; m < 5; m++)
        s.u[m] = u[m], s.du[m] = out[m];
    const counted *flows[3] = {other, other, other};
    since();
    right_side(&s, sp_at(&s, s.u, 0, 0, 0, 0), flows, other, other, 1, 1, out[0]);
    const long right = since();
    couple(&s, sp_at(&s, s.u, 0, 0, 0, 0), sp_at(&s, s.u, 1, 0, 0, 0), sp_at(&s, s.u, 2, 0, 0, 0), sp_at(&s, s.u, 3, 0, 0, 0),
           out[0], out[1], out[2], out[3]);
    const long coupled = since();
    sp_lines b = sp_lines();
    b.lanes = LANES, b.length = N, b.begins = b.ends = true, b.flow = flow;
    sp_lines_place(&b, lines);
    since();
    sp_to_characteristics(&b, 1);
    sp_eliminate(&s.k, &b, 1);
    const long forth = since();
    sp_substitute(&b, 1);
    sp_from_characteristics(&b, 1);
    const long back = since();
    add(&s);
    const long added = since();
    printf("%g %g %g %g %g\n", (double)right / N, (double)coupled / N, (double)forth / (N * LANES), (double)back / (N * LANES),
           (double)added / (N * N * N));
    printf("%d %d %d %d %d\n", SP_FLOPS_RIGHT, SP_FLOPS_FORTH, SP_FLOPS_BACK, SP_FLOPS_ADD, SP_FLOPS);
}
