/* What a datatype describes, as nested strided loops: from MPI's own decoder, MPI_Type_get_envelope and
 * MPI_Type_get_contents, so that any MPI will do.  Byna, Gropp, Sun, Thakur 2003, sections 5.1 and 5.4.
 *
 * The order of the loops and parts is that of the type map: the order in which MPI_Pack takes the elements. */
#include <stdlib.h>

#include "pack.h"

#if MPI_VERSION >= 4
#pragma weak PMPI_Type_get_envelope_c
#endif

/* What MPI_Type_get_contents says. */
typedef struct {
    int combiner, integers, addresses, types;
    int *integer;
    MPI_Aint *address;
    MPI_Datatype *type;
} contents;

static bool flatten(MPI_Datatype, pack_arena *, pack_part *whole);

/* Bytes from one item to the next. */
static MPI_Aint extent_of(MPI_Datatype type)
{
    MPI_Aint lower, extent;
    PMPI_Type_get_extent(type, &lower, &extent);
    return extent;
}

/* --- predefined datatypes ---------------------------------------------------------------------------------------- */

/* Pairs of the reductions MPI_MINLOC and MPI_MAXLOC: structures, with the padding of C. */
static bool pair_of(MPI_Datatype type, size_t *first, size_t *second)
{
    const struct { MPI_Datatype type; size_t first, second; } pairs[] = {
#define PAIR(name, of) { name, sizeof(of), offsetof(struct { of value; int at; }, at) }
        PAIR(MPI_FLOAT_INT, float), PAIR(MPI_DOUBLE_INT, double), PAIR(MPI_LONG_INT, long), PAIR(MPI_SHORT_INT, short),
        PAIR(MPI_LONG_DOUBLE_INT, long double), PAIR(MPI_2INT, int),
#undef PAIR
    };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
        if (type == pairs[k].type) {
            *first = pairs[k].first;
            *second = pairs[k].second;
            return true;
        }
    return false;
}

static bool predefined(MPI_Datatype type, pack_arena *arena, pack_part *whole)
{
    int size;
    MPI_Aint lower, true_lower, extent, true_extent;
    size_t first, second;
    PMPI_Type_size(type, &size);
    PMPI_Type_get_extent(type, &lower, &extent);
    PMPI_Type_get_true_extent(type, &true_lower, &true_extent);
    if (pair_of(type, &first, &second)) {
        if ((size_t)size != first + sizeof(int))
            return false;
        arena->mixed = true;
        pack_part parts[] = {pack_block(arena, first), pack_block(arena, sizeof(int))};
        parts[1].offset = (ptrdiff_t)second;
        *whole = pack_list(arena, parts, 2);
        return true;
    }
    arena->mixed |= (size & (size - 1)) || (arena->element && arena->element != (size_t)size);
    arena->element = (size_t)size;
    *whole = pack_block(arena, (size_t)size);
    return size > 0 && lower == 0 && true_lower == 0 && extent == size && true_extent == size;
}

/* --- derived datatypes ------------------------------------------------------------------------------------------- */

/* `n` blocks of `of`, whose lengths and places two functions tell. */
typedef size_t length_of(const contents *, size_t i);
typedef ptrdiff_t place_of(const contents *, size_t i, ptrdiff_t extent);

static size_t one_length(const contents *c, size_t i) { return (size_t)c->integer[1]; }
static size_t its_length(const contents *c, size_t i) { return (size_t)c->integer[1 + i]; }
static ptrdiff_t after_length(const contents *c, size_t i, ptrdiff_t extent) { return c->integer[2 + i] * extent; }
static ptrdiff_t after_lengths(const contents *c, size_t i, ptrdiff_t extent) { return c->integer[1 + c->integer[0] + i] * extent; }
static ptrdiff_t in_bytes(const contents *c, size_t i, ptrdiff_t extent) { return c->address[i]; }

static pack_part blocks(pack_arena *arena, const contents *c, pack_part of, length_of *length, place_of *place)
{
    const size_t n = (size_t)c->integer[0];
    const ptrdiff_t extent = extent_of(c->type[0]);
    pack_part *parts = malloc((n + 1) * sizeof *parts);
    if (!parts) {
        arena->exhausted = true;
        return of;
    }
    enum { KNOWN = 16 };                /* lengths met already: their loops are shared */
    struct { size_t length; pack_part part; } known[KNOWN] = {0};
    for (size_t i = 0; i < n; i++) {
        const size_t l = length(c, i);
        if (known[l % KNOWN].length != l || !known[l % KNOWN].part.node) {
            known[l % KNOWN].length = l;
            known[l % KNOWN].part = pack_loop(arena, of, l, extent);
        }
        parts[i] = known[l % KNOWN].part;
        parts[i].offset += place(c, i, extent);
    }
    const pack_part whole = pack_list(arena, parts, n);
    free(parts);
    return whole;
}

/* integer: dimensions, sizes, sizes of the part, its starts, order. */
static pack_part subarray(pack_arena *arena, const contents *c, pack_part of)
{
    const int dims = c->integer[0], *size = c->integer + 1, *part = size + dims, *start = part + dims;
    ptrdiff_t step = extent_of(c->type[0]), offset = 0;
    for (int k = 0; k < dims; k++) {
        const int dim = start[dims] == MPI_ORDER_C ? dims - 1 - k : k;      /* the fastest first */
        of = pack_loop(arena, of, (size_t)part[dim], step);
        offset += start[dim] * step;
        step *= size[dim];
    }
    of.offset += offset;
    return of;
}

static bool structure(pack_arena *arena, const contents *c, pack_part *whole)
{
    const size_t n = (size_t)c->integer[0];
    pack_part *parts = malloc((n + 1) * sizeof *parts);
    bool understood = parts != NULL;
    for (size_t i = 0; understood && i < n; i++) {
        understood = flatten(c->type[i], arena, &parts[i]);
        if (understood) {
            parts[i] = pack_loop(arena, parts[i], (size_t)c->integer[1 + i], extent_of(c->type[i]));
            parts[i].offset += c->address[i];
        }
    }
    if (understood)
        *whole = pack_list(arena, parts, n);
    free(parts);
    return understood;
}

static bool derived(const contents *c, pack_arena *arena, pack_part *whole)
{
    if (c->combiner == MPI_COMBINER_STRUCT)
        return structure(arena, c, whole);
    pack_part of;
    if (c->types != 1 || !flatten(c->type[0], arena, &of))
        return false;
    const ptrdiff_t extent = extent_of(c->type[0]);
    switch (c->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        *whole = of;
        return true;
    case MPI_COMBINER_CONTIGUOUS:
        *whole = pack_loop(arena, of, (size_t)c->integer[0], extent);
        return true;
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
        *whole = pack_loop(arena, pack_loop(arena, of, (size_t)c->integer[1], extent), (size_t)c->integer[0],
                           c->combiner == MPI_COMBINER_VECTOR ? c->integer[2] * extent : (ptrdiff_t)c->address[0]);
        return true;
    case MPI_COMBINER_INDEXED:
        *whole = blocks(arena, c, of, its_length, after_lengths);
        return true;
    case MPI_COMBINER_HINDEXED:
        *whole = blocks(arena, c, of, its_length, in_bytes);
        return true;
    case MPI_COMBINER_INDEXED_BLOCK:
        *whole = blocks(arena, c, of, one_length, after_length);
        return true;
    case MPI_COMBINER_HINDEXED_BLOCK:
        *whole = blocks(arena, c, of, one_length, in_bytes);
        return true;
    case MPI_COMBINER_SUBARRAY:
        *whole = subarray(arena, c, of);
        return true;
    default:            /* distributed arrays, Fortran's parametrised types and former ways to say it */
        return false;
    }
}

/* Types that were made with counts beyond int (MPI 4) have other contents. */
static bool made_with_large_counts(MPI_Datatype type)
{
#if MPI_VERSION >= 4
    MPI_Count integers, addresses, counts = 0, types;
    int combiner;
    if (PMPI_Type_get_envelope_c)
        PMPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner);
    return counts > 0;
#else
    return false;
#endif
}

/* A type that MPI_Type_get_contents made known is ours to free, unless it is predefined. */
static void free_type(MPI_Datatype *type)
{
    int integers, addresses, types, combiner;
    if (made_with_large_counts(*type)) {        /* of such a one some MPIs refuse to say anything else */
        PMPI_Type_free(type);
        return;
    }
    PMPI_Type_get_envelope(*type, &integers, &addresses, &types, &combiner);
    if (combiner != MPI_COMBINER_NAMED && combiner != MPI_COMBINER_F90_INTEGER && combiner != MPI_COMBINER_F90_REAL
        && combiner != MPI_COMBINER_F90_COMPLEX)
        PMPI_Type_free(type);
}

static bool flatten(MPI_Datatype type, pack_arena *arena, pack_part *whole)
{
    contents c;
    *whole = (pack_part){0};
    if (made_with_large_counts(type))
        return false;
    PMPI_Type_get_envelope(type, &c.integers, &c.addresses, &c.types, &c.combiner);
    if (c.combiner == MPI_COMBINER_NAMED)
        return predefined(type, arena, whole);
    if (!c.types)
        return false;
    c.integer = malloc(((size_t)c.integers + 1) * sizeof *c.integer);
    c.address = malloc(((size_t)c.addresses + 1) * sizeof *c.address);
    c.type = malloc((size_t)c.types * sizeof *c.type);
    bool understood = c.integer && c.address && c.type;
    if (understood) {
        PMPI_Type_get_contents(type, c.integers, c.addresses, c.types, c.integer, c.address, c.type);
        understood = derived(&c, arena, whole);
        for (int i = 0; i < c.types; i++)
            free_type(&c.type[i]);
    }
    free(c.integer);
    free(c.address);
    free(c.type);
    return understood;
}

bool pack_flatten(MPI_Datatype type, pack_arena *arena, pack_part *whole)
{
    return flatten(type, arena, whole) && !arena->exhausted;
}
