#include "rounds.h"

#include <mpi.h>
#include <string.h>

#include "exchanges.h"
#include "plumbline.h"
#include "tournament.h"

enum { TAG = 1 };

static void look(pairs_ends *e, int partner, long message)
{
    e->wrong += pingpong_wrong_bytes(e->in, (size_t)e->bytes, partner, (uint64_t)message);
    e->arrived++;
    memset(e->in, 0xFF, (size_t)e->bytes);
}

/* Messages one way.  The empty exchange before lets both begin at once. */
static double one_way(pairs_ends *e, int partner, bool sends, long messages)
{
    MPI_Sendrecv(NULL, 0, MPI_BYTE, partner, TAG, NULL, 0, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const double begin = pl_now();
    for (long message = 0; message < messages; message++)
        if (sends) {
            if (e->verifying)
                pingpong_write(e->out, (size_t)e->bytes, e->rank, (uint64_t)message);
            MPI_Send(e->out, e->bytes, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
            MPI_Recv(NULL, 0, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(e->in, e->bytes, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (e->verifying)
                look(e, partner, message);
            MPI_Send(NULL, 0, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
        }
    return pl_now() - begin;
}

double pairs_round(pairs_ends *e, int round, long messages)
{
    const int partner = pl_tournament_partner(e->ranks, e->rank, round);
    MPI_Barrier(MPI_COMM_WORLD);
    if (partner < 0)
        return 0;
    const bool first = e->rank < partner;
    const double before = one_way(e, partner, first, messages), after = one_way(e, partner, !first, messages);
    return first ? before : after;
}
