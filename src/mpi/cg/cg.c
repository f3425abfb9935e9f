#include "cg.h"

#include <math.h>
#include <stdlib.h>

enum { SUM_TAG = 1, TRANSPOSE_TAG, GATHER_TAG };

/* --- the grid and what lies where ------------------------------------------------------------------------------- */

const char *cg_refusal(int ranks, const cg_size *size)
{
    if (ranks < 1 || ranks & (ranks - 1))
        return "the grid of processes needs a power of two of them: 1, 2, 4, 8, ...";
    if ((size_t)ranks > size->n)
        return "more processes than rows of the matrix: give a larger size";
    return NULL;
}

/* First word of part k of `parts` equal parts of n. */
static size_t part(size_t n, int k, int parts) { return n * (size_t)k / (size_t)parts; }

/* Column blocks in a row block: 1 or 2. */
static int width(const cg_solver *s) { return s->grid_columns / s->grid_rows; }

static void make_grid(cg_solver *s)
{
    const app *a = s->a;
    s->grid_rows = 1;
    while (s->grid_rows * s->grid_rows * 4 <= a->ranks)
        s->grid_rows *= 2;
    s->grid_columns = a->ranks / s->grid_rows;
    s->grid_row = a->rank / s->grid_columns;
    s->grid_column = a->rank % s->grid_columns;
}

/* First word of row block i. */
static size_t row_cut(const cg_solver *s, int i) { return s->cut[i * width(s)]; }

/* Row block i of the grid's rows is made of the column blocks i * width .. i * width + width - 1: so they nest. */
static void place(cg_solver *s)
{
    s->cut = app_memory(malloc((size_t)(s->grid_columns + 1) * sizeof *s->cut));
    cg_vectors *vectors = cg_vectors_create(s->size);
    cg_cut(s->size, vectors, s->grid_columns, s->cut);
    s->block.row = row_cut(s, s->grid_row);
    s->block.rows = row_cut(s, s->grid_row + 1) - s->block.row;
    s->block.column = s->cut[s->grid_column];
    s->block.columns = s->cut[s->grid_column + 1] - s->block.column;
    s->own = s->exchange == CG_HALVING ? part(s->block.columns, s->grid_row, s->grid_rows) : 0;
    s->length = (s->exchange == CG_HALVING ? part(s->block.columns, s->grid_row + 1, s->grid_rows) : s->block.columns) - s->own;
    cg_block_create(s->size, vectors, &s->block);
    cg_vectors_destroy(vectors);
}

cg_solver *cg_create(app *a, const cg_size *size, cg_exchange exchange)
{
    cg_solver *s = app_memory(calloc(1, sizeof *s));
    *s = (cg_solver){.a = a, .size = size, .exchange = exchange};
    make_grid(s);
    place(s);
    double **words[] = {&s->x, &s->z, &s->p, &s->q, &s->r}, **of_rows[] = {&s->w, &s->theirs};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        *words[i] = app_memory(calloc(s->length + 1, sizeof(double)));
    for (size_t i = 0; i < sizeof of_rows / sizeof *of_rows; i++)
        *of_rows[i] = app_memory(calloc(s->block.rows + 1, sizeof(double)));
    s->gathered = app_memory(calloc(s->block.columns + 1, sizeof(double)));
    MPI_Comm_split(a->world, s->grid_row, s->grid_column, &s->row);
    MPI_Comm_split(a->world, s->grid_column, s->grid_row, &s->column);
    const double own = (double)s->block.begin[s->block.rows];
    MPI_Allreduce(&own, &s->elements, 1, MPI_DOUBLE, MPI_SUM, a->world);
    s->sums = exchange == CG_HALVING ? a->world : s->row;
    return s;
}

void cg_destroy(cg_solver *s)
{
    MPI_Comm_free(&s->row);
    MPI_Comm_free(&s->column);
    cg_block_destroy(&s->block);
    free(s->cut);
    double *vectors[] = {s->x, s->z, s->p, s->q, s->r, s->w, s->theirs, s->gathered};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        free(vectors[i]);
    free(s);
}

/* --- the product ------------------------------------------------------------------------------------------------ */

static void multiply_block(cg_solver *s, const double *p, double *w)
{
    const cg_block *b = &s->block;
    for (size_t i = 0; i < b->rows; i++) {
        double sum = 0;
        for (size_t k = b->begin[i]; k < b->begin[i + 1]; k++)
            sum += b->value[k] * p[b->at[k]];
        w[i] = sum;
    }
    s->products++;
    app_compute(s->a, 2.0 * (double)b->begin[b->rows]);
}

static void add(cg_solver *s, double *to, const double *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
    app_compute(s->a, (double)n);
}

/* Sends n words to one process of the world, and receives m from one; they are both ourselves, or neither is. */
static void transpose(cg_solver *s, const double *mine, size_t n, int to, double *q, size_t m, int from)
{
    if (to != s->a->rank)
        app_exchange(s->a, s->a->world, mine, n, to, q, m, from, TRANSPOSE_TAG);
    else
        for (size_t k = 0; k < m; k++)
            q[k] = mine[k];
}

/* Everybody gets all of w, summed along the row of the grid; then the process that has our columns as rows sends them. */
static void sum_by_doubling(cg_solver *s, double *w, double *q)
{
    const size_t rows = s->block.rows;
    for (int away = s->grid_columns / 2; away >= 1; away /= 2) {
        const int partner = s->grid_column ^ away;
        app_exchange(s->a, s->row, w, rows, partner, s->theirs, rows, partner, SUM_TAG);
        add(s, w, s->theirs, rows);
    }
    const int wide = width(s), half = s->grid_column % wide;
    const int partner = s->grid_column / wide * s->grid_columns + s->grid_row * wide + half;
    const size_t begin = s->cut[s->grid_row * wide + half], end = s->cut[s->grid_row * wide + half + 1];
    transpose(s, w + (begin - s->block.row), end - begin, partner, q, s->block.columns, partner);
}

/* First word of piece k of row block i, counted from that block's first: the C pieces of a row block, R of them in each of
 * its column blocks. */
static size_t piece(const cg_solver *s, int i, int k)
{
    const int rows = s->grid_rows, block = i * width(s) + k / rows;
    if (k == s->grid_columns)
        return row_cut(s, i + 1) - row_cut(s, i);
    return s->cut[block] - row_cut(s, i) + part(s->cut[block + 1] - s->cut[block], k % rows, rows);
}

/* Each process of a row of the grid gets its piece of the sum; then the pieces go to their owners: piece k of row block i
 * is one of column block i * wide + k / R, and the owner there of words k % R. */
static void sum_by_halving(cg_solver *s, double *w, double *q)
{
    const int rows = s->grid_rows, columns = s->grid_columns, i = s->grid_row, j = s->grid_column, wide = width(s);
    int first = 0, last = columns;      /* the pieces that this process still sums */
    for (int away = columns / 2; away >= 1; away /= 2) {
        const int partner = j ^ away, middle = first + away;
        const bool low = j < middle;
        const size_t begin = piece(s, i, first), cut = piece(s, i, middle), end = piece(s, i, last);
        const size_t kept = low ? begin : cut, given = low ? cut : begin;
        const size_t keep = low ? cut - begin : end - cut, give = low ? end - cut : cut - begin;
        app_exchange(s->a, s->row, w + given, give, partner, s->theirs, keep, partner, SUM_TAG);
        add(s, w + kept, s->theirs, keep);
        first = low ? first : middle;
        last = low ? middle : last;
    }
    const int to = j % rows * columns + i * wide + j / rows, from = j / wide * columns + j % wide * rows + i;
    const size_t mine = piece(s, i, j);
    transpose(s, w + mine, piece(s, i, j + 1) - mine, to, q, s->length, from);
}

/* All of the column's words of p, from those of its processes. */
static const double *gather(cg_solver *s, const double *p)
{
    const size_t m = s->block.columns;
    const int rows = s->grid_rows, i = s->grid_row;
    for (size_t k = 0; k < s->length; k++)
        s->gathered[s->own + k] = p[k];
    for (int away = 1; away < rows; away *= 2) {
        const int partner = i ^ away, ours = i / away * away, theirs = partner / away * away;
        const size_t here = part(m, ours, rows), there = part(m, theirs, rows);
        app_exchange(s->a, s->column, s->gathered + here, part(m, ours + away, rows) - here, partner, s->gathered + there,
                     part(m, theirs + away, rows) - there, partner, GATHER_TAG);
    }
    return s->gathered;
}

/* q = A p */
static void multiply(cg_solver *s, const double *p, double *q)
{
    if (s->exchange == CG_HALVING) {
        multiply_block(s, gather(s, p), s->w);
        sum_by_halving(s, s->w, q);
    } else {
        multiply_block(s, p, s->w);
        sum_by_doubling(s, s->w, q);
    }
    const double *diagonal = s->block.diagonal + s->own;
    for (size_t k = 0; k < s->length; k++)
        q[k] += diagonal[k] * p[k];
    app_compute(s->a, 2.0 * (double)s->length);
}

/* --- the iteration ---------------------------------------------------------------------------------------------- */

static double own_product(cg_solver *s, const double *a, const double *b)
{
    double sum = 0;
    for (size_t i = 0; i < s->length; i++)
        sum += a[i] * b[i];
    app_compute(s->a, 2.0 * (double)s->length);
    return sum;
}

static double product(cg_solver *s, const double *a, const double *b)
{
    double sum = own_product(s, a, b);
    app_sum(s->a, s->sums, &sum, 1);
    return sum;
}

/* z with A z = x, nearly; and the residual. */
static void solve(cg_solver *s)
{
    const size_t m = s->length;
    for (size_t i = 0; i < m; i++) {
        s->z[i] = 0;
        s->r[i] = s->p[i] = s->x[i];
    }
    double rho = product(s, s->r, s->r);
    const double norm = sqrt(rho);
    for (int step = 0; step < CG_STEPS; step++) {
        multiply(s, s->p, s->q);
        const double alpha = rho / product(s, s->p, s->q), before = rho;
        for (size_t i = 0; i < m; i++) {
            s->z[i] += alpha * s->p[i];
            s->r[i] -= alpha * s->q[i];
        }
        app_compute(s->a, 4.0 * (double)m);
        rho = product(s, s->r, s->r);
        const double beta = rho / before;
        for (size_t i = 0; i < m; i++)
            s->p[i] = s->r[i] + beta * s->p[i];
        app_compute(s->a, 2.0 * (double)m);
    }
    multiply(s, s->z, s->q);
    for (size_t i = 0; i < m; i++)
        s->r[i] = s->x[i] - s->q[i];
    app_compute(s->a, (double)m);
    s->residual = sqrt(product(s, s->r, s->r)) / norm;
}

void cg_start(cg_solver *s)
{
    for (size_t i = 0; i < s->length; i++)
        s->x[i] = 1;
    s->zeta = s->residual = NAN;
    s->products = 0;
}

void cg_iterate(cg_solver *s)
{
    solve(s);
    double sums[] = {own_product(s, s->x, s->z), own_product(s, s->z, s->z)};
    app_sum(s->a, s->sums, sums, 2);
    s->zeta = s->size->shift + 1 / sums[0];
    for (size_t i = 0; i < s->length; i++)
        s->x[i] = s->z[i] / sqrt(sums[1]);
    app_compute(s->a, (double)s->length);
}

double cg_flops(const cg_size *size, double elements)
{
    const double n = (double)size->n;
    return 2 * (elements + n) * (CG_STEPS + 1) + 10 * n * (CG_STEPS + 1);
}
