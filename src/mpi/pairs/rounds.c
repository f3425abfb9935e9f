#include "rounds.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "tournament.h"

enum { TAG = 1 };

/* Messages one way.  The empty exchange before lets both begin at once. */
static double one_way(const pairs_ends *e, int partner, bool sends, long messages)
{
    MPI_Sendrecv(NULL, 0, MPI_BYTE, partner, TAG, NULL, 0, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const double begin = MPI_Wtime();
    for (long message = 0; message < messages; message++)
        if (sends) {
            MPI_Send(e->out, e->bytes, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
            MPI_Recv(NULL, 0, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(e->in, e->bytes, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(NULL, 0, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
        }
    return MPI_Wtime() - begin;
}

double pairs_round(const pairs_ends *e, int round, long messages)
{
    const int partner = pl_tournament_partner(e->ranks, e->rank, round);
    MPI_Barrier(MPI_COMM_WORLD);
    if (partner < 0)
        return 0;
    const bool first = e->rank < partner;
    const double before = one_way(e, partner, first, messages), after = one_way(e, partner, !first, messages);
    return first ? before : after;
}
