/* The matrix transpose as a message, as the runtime sees it: variants, data, model, verification.  The ranks of the first
 * half of the processes exchange messages with those of the second half, all pairs at once; what is done within one
 * process is done by those of the first half while their partners wait. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "packing.h"
#include "runtime.h"

#define LOOP(function) .loop = (pl_loop)datatype_##function
#define NEEDS_LIBRARY "libplumbline_pack is not loaded: start the program with LD_PRELOAD=libplumbline_pack.so"

/* Not constant: the variants of the library lose their loops where it is not loaded. */
static pl_variant variants[] = {
    {"datatype", LOOP(datatype), .about = "sent as a vector of vectors: the MPI itself packs"},
    {"packed", LOOP(packed), .about = "packed by hand in plain loops, sent contiguously"},
    {"blocked", LOOP(blocked), .about = "packed by hand in blocks of 16 x 16, sent contiguously"},
    {"mpi_pack", LOOP(mpi_pack), .about = "packed by MPI_Pack, sent as MPI_PACKED"},
    {"library", LOOP(library), .about = "sent as a vector of vectors: libplumbline_pack packs"},
    {"contiguous", LOOP(contiguous), .about = "the same bytes as they lie in memory: no transpose"},
    {"copy", LOOP(copy), .about = "no message: the C library's copy of the same bytes, no transpose"},
    {"pack_datatype", LOOP(pack_datatype), .about = "no message: MPI_Pack alone"},
    {"pack_hand", LOOP(pack_hand), .about = "no message: the loops of packed alone"},
    {"pack_blocked", LOOP(pack_blocked), .about = "no message: the loops of blocked alone"},
    {"pack_library", LOOP(pack_library), .about = "no message: libplumbline_pack's packing alone"},
    {"unpack_datatype", LOOP(unpack_datatype), .about = "no message: MPI_Unpack alone"},
    {"unpack_hand", LOOP(unpack_hand), .about = "no message: the inverse of pack_hand"},
    {"unpack_blocked", LOOP(unpack_blocked), .about = "no message: the inverse of pack_blocked"},
    {"unpack_library", LOOP(unpack_library), .about = "no message: libplumbline_pack's unpacking alone"},
    {0},
};

static bool begins(const char *text, const char *with) { return !strncmp(text, with, strlen(with)); }
static bool unpacks(const pl_case *c) { return begins(c->variant->name, "unpack_"); }

static bool is_local(const pl_case *c)
{
    return unpacks(c) || begins(c->variant->name, "pack_") || !strcmp(c->variant->name, "copy");
}

static bool is_transposed(const pl_case *c)
{
    return strcmp(c->variant->name, "copy") && strcmp(c->variant->name, "contiguous");
}

enum { TLB };

static const pl_parameter parameters[] = {
    [TLB] = {"tlb", 0, 1, "entries of the TLB that libplumbline_pack decides by; 0: its own number", 1 << 24, .from_zero = true},
    {0},
};

/* --- data ------------------------------------------------------------------------------------------------------ */

enum { MATRIX, RECEIVED, PACKED, BUFFERS, MOST = 16383 };

typedef struct {
    pl_buffers *buffers;
    datatype_ends ends;
} transpose_data;

static size_t matrix_bytes(const pl_case *c) { return c->n * c->n * sizeof(double); }
static size_t footprint(const pl_case *c) { return BUFFERS * matrix_bytes(c); }

/* The columns, one after the other: n vectors, each of one element of every row. */
static MPI_Datatype columns_of(int n)
{
    MPI_Datatype column, columns;
    MPI_Type_vector(n, 1, n, MPI_DOUBLE, &column);
    MPI_Type_create_hvector(n, 1, sizeof(double), column, &columns);
    MPI_Type_commit(&columns);
    MPI_Type_free(&column);
    return columns;
}

static void *create(const pl_case *c)
{
    const size_t bytes[BUFFERS] = {matrix_bytes(c), matrix_bytes(c), matrix_bytes(c)};
    transpose_data *d = pl_allocate(sizeof *d, "the matrices");
    d->buffers = pl_buffers_create(c, BUFFERS, bytes, NULL);
    d->ends = (datatype_ends){.n = c->n, .matrix = d->buffers->at[MATRIX], .received = d->buffers->at[RECEIVED],
                              .packed = d->buffers->at[PACKED], .columns = columns_of((int)c->n), .partner = pl_partner(),
                              .first = pl_leads()};
    return d;
}

static datatype_ends *ends_of(const pl_case *c) { return &((transpose_data *)c->data)->ends; }

static void destroy(void *data)
{
    MPI_Type_free(&((transpose_data *)data)->ends.columns);
    pl_first_buffers_destroy(data);
}

/* Every element of every process has a value of its own. */
static double value(const pl_case *c, int rank, size_t i, size_t j)
{
    return ((double)rank * (double)c->n + (double)i) * (double)c->n + (double)j;
}

static void touch(const pl_case *c, int thread, int threads)
{
    if (thread > 0)
        return;
    double *const matrix = ((transpose_data *)c->data)->buffers->at[MATRIX];
    for (size_t i = 0; i < c->n; i++)
        for (size_t j = 0; j < c->n; j++)
            matrix[i * c->n + j] = value(c, pl_processes.rank, i, j);
    memset(ends_of(c)->received, 0, matrix_bytes(c));
    memset(ends_of(c)->packed, 0, matrix_bytes(c));
}

/* --- the work -------------------------------------------------------------------------------------------------- */

static bool library_is_loaded;

/* With a library in some processes only, the same options would name other cases in each. */
static void check_library(void)
{
    static bool done;
    if (done)
        return;
    done = true;
    const double with = pl_processes.reduce_sum(library_is_loaded);
    if (with > 0 && with < pl_processes.ranks)
        pl_fail("libplumbline_pack is loaded in %.0f of %d processes: preload it in all of them or in none", with,
                pl_processes.ranks);
}

static void check(const pl_case *c)
{
    check_library();
    if (c->parameters[TLB] && !datatype_set_tlb(0))
        pl_fail("--tlb %ld: " NEEDS_LIBRARY, c->parameters[TLB]);
    if (c->n > MOST)
        pl_fail("--size %zu: this is the dimension of a square matrix, and MPI counts its bytes with an int: give at most %d",
                c->n, MOST);
}

static void nothing(datatype_ends *e) {}

static void plan(const pl_case *c, pl_plan *p)
{
    datatype_set_tlb((int)c->parameters[TLB]);
    if (!pl_leads() && is_local(c))
        p->loop = (pl_loop)nothing;
}

static void run(const pl_case *c, const pl_plan *p) { ((datatype_pass *)p->loop)(ends_of(c)); }

/* Messages one after the other that a pass takes the time of. */
static int messages(const pl_case *c) { return is_local(c) ? 0 : 2; }

static pl_work work(const pl_case *c)
{
    if (is_local(c))
        return (pl_work){.load_bytes = (double)matrix_bytes(c), .source = "the bytes that a message has"};
    return (pl_work){.load_bytes = messages(c) * (double)matrix_bytes(c), .source = "the messages of one pair, both ways"};
}

static void facts(const pl_case *c, pl_fact *found)
{
    found[0] = (pl_fact){"messages", NULL, messages(c)};
    found[1] = (pl_fact){"pack_library", library_is_loaded ? "loaded" : "absent", 0};
}

/* --- verification ---------------------------------------------------------------------------------------------- */

/* The matrix does not come anew: what any pass has spoiled is to be found. */
static void poison(const pl_case *c)
{
    memset(ends_of(c)->received, 0xFF, matrix_bytes(c));    /* not a number */
    memset(ends_of(c)->packed, 0xFF, matrix_bytes(c));
    ends_of(c)->left_to_mpi = false;
}

/* From the indices, whatever the loops did. */
static double error_of(const pl_case *c, const double *found, int rank, bool transposed)
{
    double worst = 0;
    for (size_t i = 0; i < c->n; i++)
        for (size_t j = 0; j < c->n; j++) {
            const double right = transposed ? value(c, rank, j, i) : value(c, rank, i, j);
            const double error = fabs(found[i * c->n + j] - right);
            if (!(error <= worst))      /* not a number counts, and stays */
                worst = isnan(error) ? INFINITY : error;
        }
    return worst;
}

static double verify(const pl_case *c)
{
    const datatype_ends *e = ends_of(c);
    if (e->left_to_mpi)
        return INFINITY;
    double error = error_of(c, e->matrix, pl_processes.rank, false);
    if (!is_local(c))
        error = fmax(error, error_of(c, e->received, e->partner, is_transposed(c)));
    else if (e->first)
        error = fmax(error, error_of(c, unpacks(c) ? e->received : e->packed, pl_processes.rank, is_transposed(c)));
    return error;
}

static const pl_kernel datatype = {
    .name = "datatype", .title = "the transpose as a message, --size is the dimension of the square matrix", .variants = variants,
    .parameters = parameters, .usual_size = 1024, .check = check, .footprint = footprint, .create = create, .touch = touch, .plan = plan,
    .run = run, .work = work,
    .verify = verify, .poison = poison, .buffers = pl_first_buffers, .destroy = destroy, .facts = facts, .in_pairs = true,
};

int main(int argc, char **argv)
{
    library_is_loaded = datatype_find_library();
    for (pl_variant *v = variants; v->name && !library_is_loaded; v++)
        if (strstr(v->name, "library")) {
            v->loop = NULL;
            v->about = NEEDS_LIBRARY;
        }
    return pl_mpi_main(argc, argv, &datatype);
}
