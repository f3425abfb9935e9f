/* Random nested datatypes, the same on every rank for the same seed. */
#ifndef TYPES_H
#define TYPES_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

static uint64_t bits(void)      /* SplitMix64 */
{
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static int between(int least, int most) { return least + (int)(bits() % (uint64_t)(most - least + 1)); }
static int zeros, mixed;        /* the type at hand has parts of length 0, elements of several kinds */
static int element;             /* bytes of one of them */

static int zero(void) { const int is = between(0, 11) == 0; zeros |= is; return is; }
static int rarely(void) { return between(0, 11) == 0; }

static MPI_Datatype basic(void)
{
    const MPI_Datatype types[] = {      /* no long double: its padding need not arrive */
        MPI_BYTE, MPI_CHAR, MPI_SHORT, MPI_INT, MPI_FLOAT, MPI_DOUBLE, MPI_DOUBLE, MPI_LONG, MPI_INT64_T,
        MPI_C_DOUBLE_COMPLEX, MPI_DOUBLE_INT, MPI_SHORT_INT, MPI_2INT, MPI_FLOAT_INT, MPI_LONG_INT,
    };
    MPI_Datatype type;
    const int which = between(0, sizeof types / sizeof *types - 1);
    mixed |= which >= 10;
    PMPI_Type_size(types[which], &element);
    MPI_Type_dup(types[which], &type);
    return type;
}

/* The transpose of a matrix, or a part of one; sometimes with lines in any order, or elements of two. */
static MPI_Datatype matrix(void)
{
    MPI_Datatype element = basic(), column, type;
    MPI_Aint lower, extent;
    const int rows = between(1, 70), columns = between(1, 70), ld = columns + between(0, 9), wide = rarely() ? 2 : 1;
    PMPI_Type_get_extent(element, &lower, &extent);
    if (between(0, 3)) {
        MPI_Type_create_hvector(rows, wide, (rarely() ? -1 : 1) * ld * extent * wide, element, &column);
    } else {
        MPI_Aint at[70];
        for (int i = 0; i < rows; i++)
            at[i] = (i * 13 % 71) * ld * extent * wide;
        MPI_Type_create_hindexed_block(rows, wide, at, element, &column);
    }
    if (between(0, 1)) {
        MPI_Type_create_hvector(columns, 1, extent * wide, column, &type);
    } else {
        MPI_Datatype narrow;
        MPI_Type_create_resized(column, 0, extent * wide, &narrow);
        MPI_Type_contiguous(columns, narrow, &type);
        MPI_Type_free(&narrow);
    }
    MPI_Type_free(&element);
    MPI_Type_free(&column);
    return type;
}

static MPI_Datatype nested(int depth);

static MPI_Datatype structure(int depth)
{
    MPI_Datatype types[5], type;
    int lengths[5];
    MPI_Aint at[5], next = between(-64, 64);
    const int n = between(1, 5);
    mixed = 1;
    for (int i = 0; i < n; i++) {
        MPI_Aint lower, extent;
        types[i] = nested(depth - 1);
        lengths[i] = between(1, 3);
        PMPI_Type_get_true_extent(types[i], &lower, &extent);
        at[i] = next - lower;
        PMPI_Type_get_extent(types[i], &lower, &lower);
        next += extent + labs(lower) * lengths[i] + 8 * between(0, 3);
    }
    MPI_Type_create_struct(n, lengths, at, types, &type);
    for (int i = 0; i < n; i++)
        MPI_Type_free(&types[i]);
    return type;
}

static MPI_Datatype around(MPI_Datatype of)
{
    MPI_Datatype type;
    MPI_Aint lower, extent, at[6];
    int lengths[6], places[6], sizes[3], parts[3], starts[3];
    const int n = between(1, 6), length = between(1, 4), dims = between(1, 3);
    /* Open MPI 4.1 takes vectors with stride -1 and longer blocks, which overlap, for contiguous ones. */
    const int stride = between(0, 2) ? between(0, 6) : -length - between(0, 3);
    PMPI_Type_get_extent(of, &lower, &extent);
    for (int i = 0, next = between(-3, 3); i < n; i++) {
        lengths[i] = i > 0 && zero() ? 0 : between(1, 3);
        places[i] = next;
        at[i] = next * extent;
        next += (rarely() ? -2 : 4) + between(0, 2);
    }
    for (int i = 0; i < dims; i++) {
        sizes[i] = between(1, 5);
        parts[i] = between(1, sizes[i]);
        starts[i] = between(0, sizes[i] - parts[i]);
    }
    switch (between(0, 9)) {
    case 0: MPI_Type_contiguous(n, of, &type); break;
    case 1: MPI_Type_vector(n, length, stride, of, &type); break;
    case 2: MPI_Type_create_hvector(n, length, stride * extent + 8 * between(0, 2), of, &type); break;
    case 3: MPI_Type_indexed(n, lengths, places, of, &type); break;
    case 4: MPI_Type_create_hindexed(n, lengths, at, of, &type); break;
    case 5: MPI_Type_create_indexed_block(n, length, places, of, &type); break;
    case 6: MPI_Type_create_hindexed_block(n, length, at, of, &type); break;
    case 7: MPI_Type_create_subarray(dims, sizes, parts, starts, between(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, of, &type); break;
    case 8: MPI_Type_create_resized(of, lower + 8 * between(-4, 4), extent + 8 * between(extent > 24 ? -3 : 0, 6), &type); break;
    default: MPI_Type_dup(of, &type);
    }
    return type;
}

static MPI_Datatype nested(int depth)
{
    if (depth == 0)
        return between(0, 4) ? basic() : matrix();
    if (between(0, 5) == 0)
        return structure(depth);
    MPI_Datatype of = nested(depth - 1), type = around(of);
    MPI_Type_free(&of);
    return type;
}

/* One that is committed, and small enough. */
static MPI_Datatype any_type(int count)
{
    for (;;) {
        zeros = mixed = 0;
        MPI_Datatype type = between(0, 2) ? nested(between(0, 4)) : matrix();
        int size;
        PMPI_Type_size(type, &size);
        if ((long)size * count < 200000) {
            MPI_Type_commit(&type);
            return type;
        }
        MPI_Type_free(&type);
    }
}

#endif
