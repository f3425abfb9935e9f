#define _GNU_SOURCE     /* RTLD_DEFAULT */
#include "packing.h"

#include <dlfcn.h>
#include <string.h>

#include "loops.h"
#include "plumbline.h"

enum { TAG = 1 };

static size_t bytes_of(const datatype_ends *e) { return e->n * e->n * sizeof(double); }
static int elements_of(const datatype_ends *e) { return (int)(e->n * e->n); }

/* --- to and fro ------------------------------------------------------------------------------------------------ */

/* The MPI's own functions, PMPI_..., but in the variant that is named after the library which stands before them: so
 * variants with it and without it can be measured by turns in one process. */
static void receive(datatype_ends *e)
{
    PMPI_Recv(e->received, elements_of(e), MPI_DOUBLE, e->partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_by_library(datatype_ends *e)
{
    MPI_Recv(e->received, elements_of(e), MPI_DOUBLE, e->partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

typedef void one_way(datatype_ends *);

static void to_and_fro(datatype_ends *e, one_way *send, one_way *receive)
{
    (e->first ? send : receive)(e);
    (e->first ? receive : send)(e);
}

static void send_columns(datatype_ends *e) { PMPI_Send(e->matrix, 1, e->columns, e->partner, TAG, MPI_COMM_WORLD); }
static void send_by_library(datatype_ends *e) { MPI_Send(e->matrix, 1, e->columns, e->partner, TAG, MPI_COMM_WORLD); }

static void send_doubles(const datatype_ends *e, const double *from)
{
    PMPI_Send(from, elements_of(e), MPI_DOUBLE, e->partner, TAG, MPI_COMM_WORLD);
}

static void send_matrix(datatype_ends *e) { send_doubles(e, e->matrix); }

static void send_packed(datatype_ends *e)
{
    pack_plain(e->n, e->matrix, e->packed);
    send_doubles(e, e->packed);
}

static void send_blocked(datatype_ends *e)
{
    pack_blocked(e->n, e->matrix, e->packed);
    send_doubles(e, e->packed);
}

/* How many bytes the MPI has made of the matrix; as many as it has, where all processes write numbers alike. */
static int mpi_pack(const datatype_ends *e)
{
    int at = 0;
    PMPI_Pack(e->matrix, 1, e->columns, e->packed, (int)bytes_of(e), &at, MPI_COMM_WORLD);
    return at;
}

static void send_mpi_packed(datatype_ends *e)
{
    const int bytes = mpi_pack(e);
    PMPI_Send(e->packed, bytes, MPI_PACKED, e->partner, TAG, MPI_COMM_WORLD);
}

void datatype_datatype(datatype_ends *e) { to_and_fro(e, send_columns, receive); }
void datatype_contiguous(datatype_ends *e) { to_and_fro(e, send_matrix, receive); }
void datatype_packed(datatype_ends *e) { to_and_fro(e, send_packed, receive); }
void datatype_blocked(datatype_ends *e) { to_and_fro(e, send_blocked, receive); }
void datatype_mpi_pack(datatype_ends *e) { to_and_fro(e, send_mpi_packed, receive); }

/* --- within one process ---------------------------------------------------------------------------------------- */

void datatype_copy(datatype_ends *e)
{
    PL_KEEP_LOOP();
    memcpy(e->packed, e->matrix, bytes_of(e));
}

void datatype_pack_datatype(datatype_ends *e) { mpi_pack(e); }
void datatype_pack_hand(datatype_ends *e) { pack_plain(e->n, e->matrix, e->packed); }
void datatype_pack_blocked(datatype_ends *e) { pack_blocked(e->n, e->matrix, e->packed); }

void datatype_unpack_datatype(datatype_ends *e)
{
    int at = 0;
    PMPI_Unpack(e->matrix, (int)bytes_of(e), &at, e->received, 1, e->columns, MPI_COMM_WORLD);
}

void datatype_unpack_hand(datatype_ends *e) { unpack_plain(e->n, e->matrix, e->received); }
void datatype_unpack_blocked(datatype_ends *e) { unpack_blocked(e->n, e->matrix, e->received); }

/* --- with libplumbline_pack ------------------------------------------------------------------------------------ */

/* The functions of plumbline_pack.h, which are there if the library is. */
static struct {
    int (*pack)(const void *user, int count, MPI_Datatype, void *packed);
    int (*unpack)(const void *packed, void *user, int count, MPI_Datatype);
    void (*tlb)(int entries);
} library;

bool datatype_find_library(void)
{
    *(void **)&library.pack = dlsym(RTLD_DEFAULT, "plumbline_pack");
    *(void **)&library.unpack = dlsym(RTLD_DEFAULT, "plumbline_unpack");
    *(void **)&library.tlb = dlsym(RTLD_DEFAULT, "plumbline_pack_tlb");
    return library.pack && library.unpack;
}

bool datatype_set_tlb(int entries)
{
    if (library.tlb)
        library.tlb(entries);
    return library.tlb;
}

void datatype_library(datatype_ends *e) { to_and_fro(e, send_by_library, receive_by_library); }

void datatype_pack_library(datatype_ends *e)
{
    e->left_to_mpi |= library.pack(e->matrix, 1, e->columns, e->packed) != (int)bytes_of(e);
}

void datatype_unpack_library(datatype_ends *e)
{
    e->left_to_mpi |= library.unpack(e->matrix, e->received, 1, e->columns) != (int)bytes_of(e);
}
