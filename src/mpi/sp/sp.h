/* SP: an ADI solver, in the manner of the NAS parallel benchmark of this name (Bailey et al. 1994, RNR-94-007, section
 * "SP"): five coupled equations on a cube of n^3 points, in every time step three sweeps of scalar pentadiagonal systems.
 * Anderson, Brooks, Grassl, Scott 1997, section 5.3 and table 13.
 *
 * Linearised Euler equations for pressure p, velocity u, v, w and entropy s on a stationary flow U(x, y, z), with viscosity
 * and forcing f (problem.c), all five zero on the walls:
 *
 *     p_t + U . grad p + c (u_x + v_y + w_z) = nu lap p + f        u_t + U . grad u + c p_x = nu lap u + f       (v, w alike)
 *     s_t + U . grad s = nu lap s + f
 *
 * Central differences and a fourth difference of the order h^3 in space; in time the trapezoidal rule, factorised along the
 * axes (Beam, Warming 1976): (I - dt/2 A_x)(I - dt/2 A_y)(I - dt/2 A_z) du = dt (A u + f).  Second order in both.  A sum and
 * a difference of p and the velocity along the line make each factor five scalar systems, whose speeds are U, U, U, U + c,
 * U - c (Pulliam, Chaussee 1981): three matrices, eliminated anew in every step.
 *
 * The cube is cut into blocks, ranks[0] x ranks[1] x ranks[2] of them.  A line that is cut is solved in one of two ways:
 *     transposed   the blocks of a row of ranks are exchanged for whole lines, which are solved, and sent back.  What the
 *                  source does, and its message lengths: five row segments are the five components of one line's part.
 *     pipelined    every rank eliminates its part of the lines and hands the last two equations on to the next, then the
 *                  same backwards with the solution.
 * Both send row segments in buffers of `rows`, each of them when it is full, and wait for each.  Operations on a value
 * are the same, in the same order, for either way and any number of ranks: so is the result, to the last bit. */
#ifndef PLUMBLINE_SP_H
#define PLUMBLINE_SP_H

#include <stddef.h>

#include "app.h"

enum {
    SP_COMPONENTS = 5,      /* p, u, v, w, s */
    SP_MATRICES = 3,        /* of speed U, U + c, U - c */
    SP_AXES = 3,
    SP_EDGE = 2,            /* points beyond a block that the differences reach; rows beyond a line's part */
    SP_LANES = 16,          /* lines that are solved side by side */
    SP_CARRIED = 22,        /* row segments handed on by the elimination: of two equations, 5 right sides, 3 x 2 coefficients */
    SP_RETURNED = 10,       /* and by the substitution: two rows' 5 values */
    SP_LINE_ARRAYS = SP_COMPONENTS + 2 * SP_MATRICES,       /* of sp_lines */
};

/* Floating-point operations per point and step, counted in the loops (an fma is two). */
enum {
    SP_FLOPS_RIGHT = 5 * 28 + 16,               /* right_side() of each component, couple() */
    SP_FLOPS_FORTH = 2 + 3 * 14 + 5 * 5,        /* to characteristics, elimination of matrices and right sides */
    SP_FLOPS_BACK = 5 * 4 + 4,                  /* substitution, from characteristics */
    SP_FLOPS_ADD = 5,
    SP_FLOPS_LINES = SP_FLOPS_FORTH + SP_FLOPS_BACK,
    SP_FLOPS = SP_FLOPS_RIGHT + SP_AXES * SP_FLOPS_LINES + SP_FLOPS_ADD,
};

typedef struct {
    int n;                  /* points along an edge of the cube */
    int ranks[SP_AXES];     /* along x, y, z; 0: chosen */
    bool pipelined;
    long rows;              /* row segments in a message */
} sp_options;

/* Coefficients of one factor and of the right-hand side, in units of a time step. */
typedef struct {
    double h, dt;
    double sound;                               /* dt c / 2h */
    double centre, near, far;                   /* viscosity and fourth difference of a point, its neighbours, theirs */
    double implicit_sound, beside, beyond;
    double diagonal[3];                         /* of a point next to so many walls */
} sp_coefficients;

/* Lines side by side, or their parts in one block: row i of an array, from -SP_EDGE to length + SP_EDGE - 1, is `lanes`
 * numbers.  The rows before and after come from the neighbours; zeros at the ends of the lines. */
typedef struct {
    int lanes, length;
    bool begins, ends;                          /* at a wall */
    double *value[SP_COMPONENTS];               /* right-hand sides, then the solution */
    double *next[SP_MATRICES], *after[SP_MATRICES];     /* coefficients right of the diagonal, once eliminated */
    const double *flow;                         /* from row 0: dt U / 4h */
} sp_lines;

/* What a rank has of the lines along one axis. */
typedef struct {
    MPI_Comm row;           /* the ranks that the lines run through */
    int ranks, rank;        /* of row */
    int length, whole;      /* points of a line here, and in all */
    int across, down;       /* lines: these many side by side, in so many rows */
    ptrdiff_t along, over, below;       /* distances of neighbours in a block, in these three directions */
    int begin, end;         /* lines that are solved here, if transposed */
    double *flow;           /* of the lines, or parts, solved here */
    double *lines;          /* transposed: whole lines solved here; pipelined: all parts, eliminated */
} sp_axis;

typedef struct {
    app *app;
    sp_options chosen;
    sp_coefficients k;
    int n[SP_AXES], first[SP_AXES];             /* points of this block, and the first one's position */
    ptrdiff_t points, room;                     /* of a block; with its edges */
    ptrdiff_t step[SP_AXES];                    /* distances of neighbours in an array with edges */
    sp_axis axis[SP_AXES];
    int neighbour[SP_AXES][2];                  /* ranks of the world; MPI_PROC_NULL at a wall */
    double *u[SP_COMPONENTS];                   /* with edges */
    double *du[SP_COMPONENTS];
    double *flow[SP_AXES];                      /* dt U / 2h */
    double *force_cos[SP_COMPONENTS], *force_sin[SP_COMPONENTS];
    double *scratch;                            /* a batch of lines */
    double *out, *in;                           /* messages */
    double *face[SP_AXES][2][2];                /* edges of the block: axis, side, out or in */
    double *all;                                /* the memory of all of the above */
    long steps;                                 /* since sp_start() */
    double shortest, longest;                   /* bytes of a message of row segments since then; 0: there was none */
} sp;

/* grid.c: the ranks along the axes.  False where `ranks` of them cannot share the cube as the options say; `why`, of SP_WHY
 * characters, is then one line that says what can. */
enum { SP_WHY = 512 };
bool sp_choose(sp_options *, int ranks, char *why);

/* create.c.  Collective; the options are complete.  The solver works in `memory` of sp_bytes(), at the begin of a cache line,
 * which it leaves untouched before sp_start(), as it does app.  NULL: no memory for itself. */
size_t sp_bytes(const sp_options *, int rank);
sp *sp_create(app *, const sp_options *, void *memory);
void sp_destroy(sp *);
void sp_start(sp *);                            /* the solution of time 0 */
static inline double *sp_at(const sp *s, double *const *array, int m, int x, int y, int z)
{
    return array[m] + (x + SP_EDGE) + (y + SP_EDGE) * s->step[1] + (z + SP_EDGE) * s->step[2];
}

void sp_step(sp *);     /* sp.c */

/* lines.c */
size_t sp_lines_room(int lanes, int length, int arrays);
void sp_lines_place(sp_lines *, double *memory);    /* SP_LINE_ARRAYS of them */
void sp_to_characteristics(sp_lines *, int axis);
void sp_from_characteristics(sp_lines *, int axis);
void sp_eliminate(const sp_coefficients *, sp_lines *, int axis);
void sp_substitute(sp_lines *, int axis);

/* messages.c */
void sp_exchange_edges(sp *, double *const *array);
void sp_transpose(sp *, sp_axis *, bool back);
void sp_lines_of(const sp_axis *, int rank, int *begin, int *end);  /* that a rank of the row solves, if transposed */
ptrdiff_t sp_line_origin(const sp_axis *, int line);        /* in an array without edges */
int sp_lanes(const sp_axis *, int line);                    /* of the batch that a line solved here is in */
double *sp_line_value(const sp_axis *, int line, int m);    /* row 0 of a line solved here, sp_lanes() apart */

/* Row segments on their way to, or from, the rank `away` from this one in its row: `each` of them for a row of lines.  One
 * stream of either kind at a time: they share the buffers. */
typedef struct {
    sp *s;
    MPI_Comm row;
    int peer, tag;
    size_t segment;             /* words */
    long left, held, taken;     /* segments to come; in the buffer; of these, taken out */
} sp_stream;
sp_stream sp_stream_to(sp *, const sp_axis *, int away, int each);
sp_stream sp_stream_from(sp *, const sp_axis *, int away, int each);
void sp_put(sp_stream *, double *segment);      /* sends the buffer when it is full, and after the last one */
void sp_get(sp_stream *, double *segment);

/* problem.c, at a point of the unit cube: the exact solution, the flow, and the forcing, cosine cos wt + sine sin wt. */
extern const double sp_sound, sp_viscosity, sp_frequency;
extern const double sp_fourth;      /* a fourth difference is subtracted with this factor, over h */
double sp_exact(int m, const double x[SP_AXES], double t);
double sp_flow(int axis, const double x[SP_AXES]);
void sp_force(int m, const double x[SP_AXES], double *cosine, double *sine);
void sp_position(const sp *, int x, int y, int z, double at[SP_AXES]);     /* of a point of this block */

/* proof.c.  Collective. */
double sp_error(sp *);          /* max |u - exact| of this rank: of the order h^2 */
double sp_error_bound(const sp *);
double sp_residual(sp *);       /* after one step from sp_start(): max |factors du - dt (A u + f)|, both worked out anew */
double sp_residual_bound(const sp *);

extern const app_program sp_program;     /* program.c */

#endif
