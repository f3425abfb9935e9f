/* One clock for all ranks.  Processes of one node share CLOCK_MONOTONIC; other nodes' offset from rank 0's is taken from
 * the quickest of some round trips (Cristian 1989): it is off by half of that round trip at most, and by what the two
 * clocks drift apart afterwards. */
#include "latency.h"

#include <stdlib.h>
#include <time.h>

enum { ROUND_TRIPS = 200 };

static ns offset, error;
static MPI_Comm quiet;          /* nothing ever travels here: asking for a message makes the MPI do its own work */

static ns own_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (ns)t.tv_sec * 1000000000 + t.tv_nsec;
}

ns lat_now(void) { return own_clock() + offset; }
ns lat_clock_error(void) { return error; }

static void answer(int leader, MPI_Comm world)
{
    for (int i = 0; i < ROUND_TRIPS; i++) {
        PMPI_Recv(NULL, 0, MPI_INT64_T, leader, 0, world, MPI_STATUS_IGNORE);
        ns now = own_clock();
        PMPI_Send(&now, 1, MPI_INT64_T, leader, 0, world);
    }
}

static void ask(MPI_Comm world, ns found[2])
{
    found[1] = INT64_MAX;
    for (int i = 0; i < ROUND_TRIPS; i++) {
        ns there, before = own_clock();
        PMPI_Send(NULL, 0, MPI_INT64_T, 0, 0, world);
        PMPI_Recv(&there, 1, MPI_INT64_T, 0, 0, world, MPI_STATUS_IGNORE);
        ns after = own_clock();
        if (after - before < found[1]) {
            found[1] = after - before;
            found[0] = there - (before + (after - before) / 2);
        }
    }
    found[1] = (found[1] + 1) / 2;
}

void lat_clock_start(void)
{
    MPI_Comm world, node;
    int rank, size, place, first;
    ns found[2] = {0, 0};
    PMPI_Comm_dup(MPI_COMM_SELF, &quiet);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    PMPI_Comm_dup(MPI_COMM_WORLD, &world);
    PMPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    PMPI_Comm_rank(node, &place);
    PMPI_Allreduce(&rank, &first, 1, MPI_INT, MPI_MIN, node);

    int leads = place == 0 && first != 0;
    int *leaders = lat_allocate((size_t)size * sizeof *leaders);
    PMPI_Allgather(&leads, 1, MPI_INT, leaders, 1, MPI_INT, world);
    for (int other = 1; other < size; other++) {
        if (leaders[other] && rank == 0)
            answer(other, world);
        if (leaders[other] && rank == other)
            ask(world, found);
    }
    free(leaders);
    PMPI_Bcast(found, 2, MPI_INT64_T, 0, node);
    PMPI_Allreduce(&found[1], &error, 1, MPI_INT64_T, MPI_MAX, world);
    offset = found[0];
    PMPI_Comm_free(&node);
    PMPI_Comm_free(&world);
}

void lat_clock_stop(void) { PMPI_Comm_free(&quiet); }

void lat_busy(ns duration)
{
    if (duration > 0)
        for (ns end = lat_now() + duration; lat_now() < end;)
            ;
}

void lat_progress(void)
{
    int flag;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, quiet, &flag, MPI_STATUS_IGNORE);
}

void lat_pass_time(ns left)
{
    /* The MPI's own work must go on meanwhile, but must not be under way when the moment comes. */
    static ns cost = 500;
    if (left > 2 * cost) {
        ns before = lat_now();
        lat_progress();
        ns took = lat_now() - before;
        cost = (3 * cost + (took < 10000 ? took : 10000)) / 4;      /* one that was interrupted tells nothing */
    }
    lat_give_way();
}

void lat_wait_until(ns moment)
{
    lat_lock();
    for (ns left; (left = moment - lat_now()) > 0;)
        lat_pass_time(left);
    lat_unlock();
}
