/* A matrix of CG's kind: its vectors, its rows, and its product with x by the vectors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "generator.h"

/* A = sum over i of v_i v_i' + I, after CG's makea (Bailey et al. 1991; NPB): v_i is a sparse vector with a nonzero at i
 * and the others at random places.  Each term is positive semidefinite and I is positive definite, so A is symmetric and
 * positive definite.  Other than CG's, the values are whole numbers from 1 to 4, for exact sums: no term cancels
 * another.  A row has vector * (vector - 1) + 1 nonzeros on average, less those that fall together. */
static double weight(size_t vector, size_t j) { return (double)(int)((vector * 5 + j * 3) / 2 % 4 + 1); }

/* The places of vector i: i first, then random ones within the band, all different. */
static void draw_vector(const spmv_recipe *r, size_t i, uint32_t *place)
{
    const size_t first = i > r->band ? i - r->band : 0, last = r->rows - i > r->band ? i + r->band : r->rows - 1;
    const uint64_t width = last - first + 1;
    place[0] = (uint32_t)i;
    uint64_t draw = (uint64_t)i << 20;
    for (size_t count = 1; count < r->vector; draw++) {
        const uint32_t j = (uint32_t)(first + ((pl_random_bits(draw) >> 32) * width >> 32));
        size_t same = 0;
        while (same < count && place[same] != j)
            same++;
        place[count] = j;
        count += same == count;
    }
}

/* Which vectors hold each row. */
static void list_users(spmv_source *m)
{
    const size_t n = m->rows, all = n * m->recipe.vector;
    m->users = pl_allocate((n + 1) * sizeof *m->users, "the matrix");
    m->user = pl_allocate(all * sizeof *m->user, "the matrix");
    for (size_t k = 0; k < all; k++)
        m->users[m->vectors[k] + 1]++;
    for (size_t i = 0; i < n; i++)
        m->users[i + 1] += m->users[i];
    for (size_t k = all; k-- > 0;)     /* backwards, each list from its end: users[i + 1] moves to where list i begins */
        m->user[--m->users[m->vectors[k] + 1]] = (uint32_t)(k / m->recipe.vector);
    memmove(m->users, m->users + 1, n * sizeof *m->users);
    m->users[n] = (int64_t)all;
}

void spmv_generate(spmv_source *m)
{
    const size_t n = m->rows = m->columns = m->recipe.rows, length = m->recipe.vector;
    m->exact = true;
    m->vectors = pl_allocate(n * length * sizeof *m->vectors, "the matrix");
    for (size_t i = 0; i < n; i++)
        draw_vector(&m->recipe, i, m->vectors + i * length);
    list_users(m);
    m->ptr = pl_allocate((n + 1) * sizeof *m->ptr, "the matrix");
    uint32_t *seen_in = pl_allocate(n * sizeof *seen_in, "the matrix");     /* the last row, plus 1, with this column */
    for (size_t row = 0; row < n; row++) {
        int64_t count = 0;
        for (int64_t u = m->users[row]; u < m->users[row + 1]; u++) {
            const uint32_t *place = m->vectors + m->user[u] * length;
            for (size_t k = 0; k < length; k++) {
                count += seen_in[place[k]] != row + 1;
                seen_in[place[k]] = (uint32_t)(row + 1);
            }
        }
        m->ptr[row + 1] = m->ptr[row] + count;
        const size_t contributions = (size_t)(m->users[row + 1] - m->users[row]) * length + 1;
        m->longest = contributions > m->longest ? contributions : m->longest;
    }
    free(seen_in);
}

size_t spmv_generated_row(const spmv_source *m, size_t row, uint64_t *work, int32_t *column, double *value)
{
    const size_t length = m->recipe.vector;
    size_t n = 0, count = 0;
    for (int64_t u = m->users[row]; u < m->users[row + 1]; u++) {
        const size_t vector = m->user[u];
        for (size_t k = 0; k < length; k++) {
            const uint64_t j = m->vectors[vector * length + k];
            work[n++] = j << 32 | (uint64_t)(weight(vector, row) * weight(vector, j));
        }
    }
    work[n++] = (uint64_t)row << 32 | 1;
    spmv_sort(n, work, work + m->longest);
    for (size_t k = 0; k < n; k++) {
        const int32_t j = (int32_t)(work[k] >> 32);
        const double term = (double)(work[k] & UINT32_MAX);
        if (count && column[count - 1] == j)
            value[count - 1] += term;
        else {
            column[count] = j;
            value[count++] = term;
        }
    }
    return count;
}

double spmv_bytes_needed(const spmv_recipe *r)
{
    const double n = (double)r->rows, v = (double)r->vector, per_row = fmin(n, v * (v - 1) + 1);
    return n * (12 * per_row + 32) + n * (8 * v + 20);
}

void spmv_by_vectors(const spmv_source *m, double *y)
{
    uint32_t *place = pl_allocate(m->recipe.vector * sizeof *place, "a vector");
    for (size_t i = 0; i < m->rows; i++) {
        double product = 0;
        draw_vector(&m->recipe, i, place);
        for (size_t k = 0; k < m->recipe.vector; k++)
            product += weight(i, place[k]) * spmv_x(place[k]);
        for (size_t k = 0; k < m->recipe.vector; k++)
            y[place[k]] += weight(i, place[k]) * product;
        y[i] += spmv_x(i);
    }
    free(place);
}
