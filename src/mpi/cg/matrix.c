#include "app.h"
#include "matrix.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const double condition = 0.1;

const cg_size cg_sizes[] = {
    {"S", 1400, 7, 15, 10, 8.5971775078648},
    {"W", 7000, 8, 15, 12, 10.362595087124},
    {"A", 14000, 11, 15, 20, 17.130235054029},
    {0},
};

const cg_size *cg_size_of(const char *name)
{
    for (const cg_size *size = cg_sizes; size->name; size++)
        if (!strcmp(size->name, name))
            return size;
    return NULL;
}

/* --- random sparse vectors ------------------------------------------------------------------------------------- */

/* The benchmark's generator: 46 bits, multiplier 5^13; a number in (0, 1). */
static double random_number(uint64_t *state)
{
    *state = *state * 1220703125u & ((UINT64_C(1) << 46) - 1);
    return ldexp((double)*state, -46);
}

/* All random vectors, those of vector i from i * most on. */
struct cg_vectors {
    int most;           /* elements of a vector */
    int *count, *at;
    double *value;
};

void cg_vectors_destroy(cg_vectors *v)
{
    free(v->count);
    free(v->at);
    free(v->value);
    free(v);
}

static int find(const int *at, int count, int what)
{
    for (int k = 0; k < count; k++)
        if (at[k] == what)
            return k;
    return -1;
}

/* Draws `nonzeros` distinct places of 0..n-1 with a value each; then element i becomes 0.5. */
static int draw(uint64_t *state, size_t n, int nonzeros, int i, int *at, double *value)
{
    int count = 0;
    size_t power = 1;
    while (power < n)
        power *= 2;
    while (count < nonzeros) {
        const double drawn = random_number(state);
        const size_t place = (size_t)((double)power * random_number(state));
        if (place >= n || find(at, count, (int)place) >= 0)
            continue;
        at[count] = (int)place;
        value[count++] = drawn;
    }
    const int own = find(at, count, i);
    at[own < 0 ? count : own] = i;
    value[own < 0 ? count : own] = 0.5;
    return own < 0 ? count + 1 : count;
}

cg_vectors *cg_vectors_create(const cg_size *size)
{
    const size_t most = (size_t)size->nonzeros + 1;
    cg_vectors *v = app_memory(malloc(sizeof *v));
    *v = (cg_vectors){(int)most, app_memory(malloc(size->n * sizeof(int))), app_memory(malloc(size->n * most * sizeof(int))),
                      app_memory(malloc(size->n * most * sizeof(double)))};
    uint64_t state = 314159265;
    random_number(&state);              /* the benchmark throws the first one away */
    for (size_t i = 0; i < size->n; i++)
        v->count[i] = draw(&state, size->n, size->nonzeros, (int)i, v->at + i * most, v->value + i * most);
    return v;
}

/* A row has as many elements as the vectors that it is in, but for those that meet: each vector counts for its length. */
void cg_cut(const cg_size *size, const cg_vectors *v, int parts, size_t *cut)
{
    const size_t most = (size_t)v->most;
    double total = 0, before = 0;
    double *elements = app_memory(calloc(size->n, sizeof *elements));
    for (size_t i = 0; i < size->n; i++)
        for (int k = 0; k < v->count[i]; k++) {
            elements[v->at[i * most + (size_t)k]] += v->count[i];
            total += v->count[i];
        }
    cut[0] = 0;
    int part = 1;
    for (size_t row = 0; row < size->n; before += elements[row++])
        for (; part < parts && before + elements[row] / 2 >= total * part / parts; part++)
            cut[part] = row;
    for (; part <= parts; part++)
        cut[part] = size->n * (size_t)part / (size_t)parts;
    free(elements);
}

/* --- the block ------------------------------------------------------------------------------------------------- */

typedef struct {
    int column;
    double value;
} element;

static int by_column(const void *a, const void *b)
{
    return ((const element *)a)->column - ((const element *)b)->column;
}

/* Which vectors have an element in which row of the block: those of row r are vector[begin[r]] .. vector[begin[r + 1]]. */
typedef struct {
    size_t *begin;
    int *vector;
    double *value;
} users;

static void users_destroy(users *u)
{
    free(u->begin);
    free(u->vector);
    free(u->value);
}

static void users_create(const cg_size *size, const cg_vectors *v, const cg_block *b, users *u)
{
    const size_t most = (size_t)v->most;
    size_t total = 0;
    u->begin = app_memory(calloc(b->rows + 2, sizeof(size_t)));
    for (size_t i = 0; i < size->n; i++)
        for (int k = 0; k < v->count[i]; k++) {
            const size_t row = (size_t)v->at[i * most + (size_t)k] - b->row;    /* wraps where it is before the block */
            if (row < b->rows) {
                u->begin[row + 2]++;
                total++;
            }
        }
    for (size_t row = 0; row < b->rows; row++)
        u->begin[row + 2] += u->begin[row + 1];
    u->vector = app_memory(malloc((total + 1) * sizeof(int)));
    u->value = app_memory(malloc((total + 1) * sizeof(double)));
    for (size_t i = 0; i < size->n; i++)
        for (int k = 0; k < v->count[i]; k++) {
            const size_t row = (size_t)v->at[i * most + (size_t)k] - b->row;
            if (row < b->rows) {
                const size_t place = u->begin[row + 1]++;
                u->vector[place] = (int)i;
                u->value[place] = v->value[i * most + (size_t)k];
            }
        }
}

static double weight(const cg_size *size, size_t i) { return pow(condition, (double)i / (double)size->n); }

static void fill_diagonal(const cg_size *size, const cg_vectors *v, cg_block *b)
{
    const size_t most = (size_t)v->most;
    for (size_t column = 0; column < b->columns; column++)
        b->diagonal[column] = condition - size->shift;
    for (size_t i = 0; i < size->n; i++)
        for (int k = 0; k < v->count[i]; k++) {
            const size_t column = (size_t)v->at[i * most + (size_t)k] - b->column;      /* wraps where it is before */
            const double value = v->value[i * most + (size_t)k];
            if (column < b->columns)
                b->diagonal[column] += weight(size, i) * value * value;
        }
}

/* The elements of one row: the weighted products of its vectors, without the diagonal.  `place` has -1 for each column of
 * the block, before and after. */
static size_t add_up(const cg_size *size, const cg_vectors *v, const users *u, const cg_block *b, size_t row, int *place,
                     element *found)
{
    const size_t most = (size_t)v->most;
    size_t count = 0;
    for (size_t k = u->begin[row]; k < u->begin[row + 1]; k++) {
        const size_t i = (size_t)u->vector[k];
        const double factor = weight(size, i) * u->value[k];
        for (int l = 0; l < v->count[i]; l++) {
            const size_t column = (size_t)v->at[i * most + (size_t)l] - b->column;
            if (column >= b->columns || column + b->column == row + b->row)
                continue;
            if (place[column] < 0) {
                place[column] = (int)count;
                found[count++] = (element){(int)column, 0};
            }
            found[place[column]].value += factor * v->value[i * most + (size_t)l];
        }
    }
    for (size_t k = 0; k < count; k++)
        place[found[k].column] = -1;
    qsort(found, count, sizeof *found, by_column);
    return count;
}

static void grow(cg_block *b, size_t *room, size_t needed)
{
    if (needed <= *room)
        return;
    *room = needed + needed / 2;
    b->at = app_memory(realloc(b->at, *room * sizeof *b->at));
    b->value = app_memory(realloc(b->value, *room * sizeof *b->value));
}

static void fill(const cg_size *size, const cg_vectors *v, const users *u, cg_block *b, int *place, element *found)
{
    size_t total = 0, room = 0;
    memset(place, 0xFF, b->columns * sizeof *place);
    b->begin[0] = 0;
    for (size_t row = 0; row < b->rows; row++) {
        const size_t count = add_up(size, v, u, b, row, place, found);
        grow(b, &room, total + count + 1);
        assert(b->at && b->value);      /* one more than there are, even of none */
        for (size_t k = 0; k < count; k++, total++) {
            b->at[total] = found[k].column;
            b->value[total] = found[k].value;
        }
        b->begin[row + 1] = total;
    }
}

void cg_block_create(const cg_size *size, const cg_vectors *v, cg_block *b)
{
    users u;
    users_create(size, v, b, &u);
    int *place = app_memory(malloc((b->columns + 1) * sizeof *place));
    element *found = app_memory(malloc((b->columns + 1) * sizeof *found));
    b->at = NULL;
    b->value = NULL;
    b->begin = app_memory(malloc((b->rows + 1) * sizeof *b->begin));
    b->diagonal = app_memory(malloc((b->columns + 1) * sizeof *b->diagonal));
    fill(size, v, &u, b, place, found);
    fill_diagonal(size, v, b);
    free(place);
    free(found);
    users_destroy(&u);
}

void cg_block_destroy(cg_block *b)
{
    free(b->begin);
    free(b->at);
    free(b->value);
    free(b->diagonal);
}
