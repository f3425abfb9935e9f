/* The type map of a datatype, byte by byte: the judge between the library and the MPI, which do not always agree.  It expands
 * the description element by element, without any of the library's shortcuts. */
#ifndef MAP_H
#define MAP_H

#include "types.h"

typedef struct { long n, room; MPI_Aint *at; } map;

static void add(map *m, MPI_Aint at, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        if (m->n == m->room)
            m->at = realloc(m->at, sizeof *m->at * (size_t)(m->room = 2 * m->room + 64));
        m->at[m->n++] = at + i;
    }
}

static void expand(map *m, MPI_Datatype type, MPI_Aint base);

static void expand_named(map *m, MPI_Datatype type, MPI_Aint base)
{
    struct { float v; int i; } f; struct { double v; int i; } d; struct { long v; int i; } l; struct { short v; int i; } s;
    int size;
    PMPI_Type_size(type, &size);
    const int second = type == MPI_FLOAT_INT ? (int)((char *)&f.i - (char *)&f) : type == MPI_DOUBLE_INT ? (int)((char *)&d.i - (char *)&d)
        : type == MPI_LONG_INT ? (int)((char *)&l.i - (char *)&l) : type == MPI_SHORT_INT ? (int)((char *)&s.i - (char *)&s) : 0;
    add(m, base, second ? size - (int)sizeof(int) : size);
    if (second)
        add(m, base + second, sizeof(int));
}

/* n items, one extent after the other. */
static void run(map *m, MPI_Datatype type, MPI_Aint base, MPI_Aint n)
{
    MPI_Aint lower, extent;
    PMPI_Type_get_extent(type, &lower, &extent);
    for (MPI_Aint i = 0; i < n; i++)
        expand(m, type, base + i * extent);
}

static void expand_part(map *m, MPI_Datatype type, MPI_Aint base, int dims, int dim, const int *i, MPI_Aint at)
{
    const int *size = i + 1, *part = size + dims, *start = part + dims, c = start[dims] == MPI_ORDER_C;
    MPI_Aint lower, extent;
    PMPI_Type_get_extent(type, &lower, &extent);
    if (dim == dims) {
        expand(m, type, base + at * extent);
        return;
    }
    const int d = c ? dim : dims - 1 - dim;         /* the slowest first */
    for (int k = 0; k < part[d]; k++)
        expand_part(m, type, base, dims, dim + 1, i, at * size[d] + start[d] + k);
}

static void expand(map *m, MPI_Datatype type, MPI_Aint base)
{
    int integers, addresses, types, combiner;
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED) {
        expand_named(m, type, base);
        return;
    }
    int *i = malloc(sizeof *i * (size_t)(integers + 1));
    MPI_Aint *a = malloc(sizeof *a * (size_t)(addresses + 1)), lower, e;
    MPI_Datatype *t = malloc(sizeof *t * (size_t)(types + 1));
    PMPI_Type_get_contents(type, integers, addresses, types, i, a, t);
    PMPI_Type_get_extent(t[0], &lower, &e);
    const int n = integers ? i[0] : 1;
    if (combiner == MPI_COMBINER_CONTIGUOUS)
        run(m, t[0], base, n);
    else if (combiner == MPI_COMBINER_DUP || combiner == MPI_COMBINER_RESIZED)
        run(m, t[0], base, 1);
    else if (combiner == MPI_COMBINER_SUBARRAY)
        expand_part(m, t[0], base, n, 0, i, 0);
    else
        for (int k = 0; k < n; k++)
            switch (combiner) {
            case MPI_COMBINER_VECTOR: run(m, t[0], base + k * i[2] * e, i[1]); break;
            case MPI_COMBINER_HVECTOR: run(m, t[0], base + k * a[0], i[1]); break;
            case MPI_COMBINER_INDEXED: run(m, t[0], base + i[1 + n + k] * e, i[1 + k]); break;
            case MPI_COMBINER_HINDEXED: run(m, t[0], base + a[k], i[1 + k]); break;
            case MPI_COMBINER_INDEXED_BLOCK: run(m, t[0], base + i[2 + k] * e, i[1]); break;
            case MPI_COMBINER_HINDEXED_BLOCK: run(m, t[0], base + a[k], i[1]); break;
            case MPI_COMBINER_STRUCT: run(m, t[k], base + a[k], i[1 + k]); break;
            default: MPI_Abort(MPI_COMM_WORLD, 3);
            }
    for (int k = 0; k < types; k++) {
        PMPI_Type_get_envelope(t[k], &integers, &addresses, &integers, &combiner);
        if (combiner != MPI_COMBINER_NAMED)
            MPI_Type_free(&t[k]);
    }
    free(i), free(a), free(t);
}

/* Where all of it lies, in bytes from the address that MPI is given. */
typedef struct { MPI_Aint first, end; } span;
static span span_of(const map *m)
{
    span lies = { 0, 0 };
    for (long i = 0; i < m->n; i++) {
        lies.first = m->at[i] < lies.first ? m->at[i] : lies.first;
        lies.end = m->at[i] >= lies.end ? m->at[i] + 1 : lies.end;
    }
    return lies;
}

#endif
