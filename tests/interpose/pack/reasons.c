/* One message of each kind to itself: what the library packs, and why it passes the others on.
 * Usage: reasons [ROWS STEP]: one message only, 64 columns of ROWS doubles that are STEP bytes apart. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static void send(MPI_Datatype type)
{
    MPI_Aint lower, first, length, extent;
    MPI_Request request;
    int bytes;
    MPI_Type_commit(&type);
    MPI_Type_size(type, &bytes);
    MPI_Type_get_extent(type, &lower, &extent);
    MPI_Type_get_true_extent(type, &first, &length);
    char *from = calloc(1, (size_t)(first + length)), *to = malloc((size_t)bytes);
    PMPI_Irecv(to, bytes, MPI_PACKED, 0, 0, MPI_COMM_SELF, &request);
    MPI_Send(from, 1, type, 0, 0, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(from), free(to);
    MPI_Type_free(&type);
}

static MPI_Datatype columns(int n, int rows, MPI_Aint step, MPI_Datatype element)
{
    MPI_Datatype column, type;
    MPI_Aint lower, extent;
    MPI_Type_get_extent(element, &lower, &extent);
    MPI_Type_create_hvector(rows, 1, step, element, &column);
    MPI_Type_create_hvector(n, 1, extent, column, &type);
    MPI_Type_free(&column);
    return type;
}

int main(int argc, char **argv)
{
    MPI_Datatype type, pair;
    MPI_Init(&argc, &argv);
    if (argc > 2)
        send(columns(64, atoi(argv[1]), atol(argv[2]), MPI_DOUBLE));
    else {
        send(columns(4, 64, 4096, MPI_DOUBLE));             /* small */
        MPI_Type_contiguous(100000, MPI_DOUBLE, &type);
        send(type);
        MPI_Type_vector(1000, 4, 8, MPI_DOUBLE, &type);     /* in order */
        send(type);
        send(columns(64, 64, 512, MPI_DOUBLE));             /* R_p = 8 */
        send(columns(100, 200, 4096, MPI_DOUBLE));          /* R_p = 200 */
        MPI_Type_contiguous(4, MPI_DOUBLE, &pair);          /* blocks of 32 bytes */
        send(columns(50, 200, 4096, pair));
        MPI_Type_free(&pair);
        send(columns(100, 200, 4096, MPI_DOUBLE_INT));      /* 8 and 4 bytes */
        MPI_Type_create_darray(1, 0, 2, (int[]){100, 200}, (int[]){MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK},
                               (int[]){MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, (int[]){1, 1}, MPI_ORDER_C,
                               MPI_DOUBLE, &type);
        send(type);
    }
    MPI_Finalize();
    return 0;
}
