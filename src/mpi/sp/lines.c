/* Scalar pentadiagonal systems of many lines side by side: no pivoting, three matrices and five right-hand sides a line.
 *
 * Equation i of a line, speed l = dt U / 4h and that of sound:
 *     beyond x(i-2) + (beside - l) x(i-1) + diagonal x(i) + (beside + l) x(i+1) + beyond x(i+2) = r(i) */
#include "sp.h"

enum { STILL, FORTH, BACK };    /* matrices */

size_t sp_lines_room(int lanes, int length, int arrays)
{
    return (size_t)lanes * (size_t)(length + 2 * SP_EDGE) * (size_t)arrays;
}

void sp_lines_place(sp_lines *b, double *memory)
{
    const size_t array = sp_lines_room(b->lanes, b->length, 1), before = (size_t)b->lanes * SP_EDGE;
    for (int m = 0; m < SP_COMPONENTS; m++)
        b->value[m] = memory + (size_t)m * array + before;
    for (int k = 0; k < SP_MATRICES; k++) {
        b->next[k] = memory + (size_t)(SP_COMPONENTS + k) * array + before;
        b->after[k] = memory + (size_t)(SP_COMPONENTS + SP_MATRICES + k) * array + before;
    }
}

/* p + u and p - u, in the place of p and u, the velocity along the line: 2 flops a point. */
void sp_to_characteristics(sp_lines *b, int axis)
{
    double *restrict const p = b->value[0], *restrict const u = b->value[1 + axis];
    for (int i = 0; i < b->length * b->lanes; i++) {
        const double sum = p[i] + u[i], difference = p[i] - u[i];
        p[i] = sum;
        u[i] = difference;
    }
}

/* 4 flops a point. */
void sp_from_characteristics(sp_lines *b, int axis)
{
    double *restrict const p = b->value[0], *restrict const u = b->value[1 + axis];
    for (int i = 0; i < b->length * b->lanes; i++) {
        const double twice_p = p[i] + u[i], twice_u = p[i] - u[i];
        p[i] = 0.5 * twice_p;
        u[i] = 0.5 * twice_u;
    }
}

/* What one matrix's equation is turned into by those two rows above: 14 flops.  `left` is what is left of the row above's
 * coefficient, `inverse` the diagonal's. */
static inline void eliminate_matrix(int lanes, const sp_coefficients *k, double diagonal, double sound,
                                    const double *restrict flow, const double *restrict next, const double *restrict after,
                                    double *restrict new_next, double *restrict new_after, double *restrict left,
                                    double *restrict inverse)
{
    const double beside = k->beside, beyond = k->beyond;
    const double *restrict const above_next = next + lanes, *restrict const above_after = after + lanes;
    for (int l = 0; l < lanes; l++) {
        const double speed = flow[l] + sound;
        left[l] = beside - speed - beyond * next[l];
        inverse[l] = 1 / (diagonal - beyond * after[l] - left[l] * above_next[l]);
        new_next[l] = (beside + speed - left[l] * above_after[l]) * inverse[l];
        new_after[l] = beyond * inverse[l];
    }
}

/* 5 flops; r[-2], r[-1] rows are done. */
static inline void eliminate_value(int lanes, double beyond, const double *restrict left, const double *restrict inverse,
                                   const double *restrict done, double *restrict r)
{
    for (int l = 0; l < lanes; l++)
        r[l] = (r[l] - beyond * done[l] - left[l] * done[l + lanes]) * inverse[l];
}

/* 4 flops; `done` are the two rows below. */
static inline void substitute_value(int lanes, const double *restrict next, const double *restrict after,
                                    const double *restrict done, double *restrict x)
{
    for (int l = 0; l < lanes; l++)
        x[l] = x[l] - next[l] * done[l] - after[l] * done[l + lanes];
}

/* Which matrix a component has, once p and the velocity along the axis have become characteristics. */
static inline int matrix_of(int m, int axis) { return m == 0 ? FORTH : m == 1 + axis ? BACK : STILL; }

/* Inlined with the number of lanes known, for whole batches, and unknown. */
static inline __attribute__((always_inline)) void eliminate(const sp_coefficients *k, sp_lines *b, int axis, int lanes)
{
    const double sound[SP_MATRICES] = {0, k->implicit_sound, -k->implicit_sound};
    double left[SP_MATRICES][lanes], inverse[SP_MATRICES][lanes];
    for (int i = 0; i < b->length; i++) {
        const int here = i * lanes, above = (i - SP_EDGE) * lanes;
        const int walls = (b->begins && i == 0) + (b->ends && i == b->length - 1);
        for (int j = 0; j < SP_MATRICES; j++)
            eliminate_matrix(lanes, k, k->diagonal[walls], sound[j], b->flow + here, b->next[j] + above,
                             b->after[j] + above, b->next[j] + here, b->after[j] + here, left[j], inverse[j]);
        for (int m = 0; m < SP_COMPONENTS; m++) {
            const int j = matrix_of(m, axis);
            eliminate_value(lanes, k->beyond, left[j], inverse[j], b->value[m] + above, b->value[m] + here);
        }
    }
}

static inline __attribute__((always_inline)) void substitute(sp_lines *b, int axis, int lanes)
{
    for (int i = b->length - 1; i >= 0; i--)
        for (int m = 0; m < SP_COMPONENTS; m++) {
            const int j = matrix_of(m, axis), here = i * lanes;
            substitute_value(lanes, b->next[j] + here, b->after[j] + here, b->value[m] + here + lanes, b->value[m] + here);
        }
}

void sp_eliminate(const sp_coefficients *k, sp_lines *b, int axis)
{
    if (b->lanes == SP_LANES)
        eliminate(k, b, axis, SP_LANES);
    else
        eliminate(k, b, axis, b->lanes);
}

void sp_substitute(sp_lines *b, int axis)
{
    if (b->lanes == SP_LANES)
        substitute(b, axis, SP_LANES);
    else
        substitute(b, axis, b->lanes);
}
