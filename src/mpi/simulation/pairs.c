/* Messages between all pairs of processes on a simulated network:  smpirun ... simulated-pairs BYTES MESSAGES
 *
 * Prints one line of JSON: the seconds of a message from each process to each other one, its answer among them; times are
 * simulated, the bytes are real and looked at. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../harness/tournament.h"
#include "../pairs/rounds.h"
#include "../pingpong/exchanges.h"

static long number(const char *text)
{
    char *end;
    const long value = strtol(text, &end, 10);
    return *text && !*end && value > 0 ? value : 0;
}

int main(int argc, char **argv)
{
    pairs_ends e = {.verifying = true};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &e.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &e.ranks);
    const long messages = argc == 3 ? number(argv[2]) : 0;
    e.bytes = messages ? (int)number(argv[1]) : 0;
    if (!e.bytes || e.ranks < 2) {
        if (e.rank == 0)
            fputs("plumbline: usage: simulated-pairs BYTES MESSAGES, both above 0, with 2 processes or more\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    e.out = malloc((size_t)e.bytes);
    e.in = calloc(1, (size_t)e.bytes);
    double *row = calloc((size_t)e.ranks, sizeof *row), *all = calloc((size_t)e.ranks * (size_t)e.ranks, sizeof *all);
    if (!e.out || !e.in || !row || !all)
        MPI_Abort(MPI_COMM_WORLD, 2);
    pingpong_write(e.out, (size_t)e.bytes, e.rank, 0);
    for (int round = 0; round < pl_tournament_rounds(e.ranks); round++) {
        const int partner = pl_tournament_partner(e.ranks, e.rank, round);
        const double seconds = pairs_round(&e, round, messages);
        if (partner >= 0)
            row[partner] = seconds / (double)messages;
    }
    double all_wrong = 0;      /* of rank 0 */
    MPI_Reduce(&e.wrong, &all_wrong, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Gather(row, e.ranks, MPI_DOUBLE, all, e.ranks, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (e.rank == 0) {
        printf("{\"application\": \"pairs\", \"bytes\": %d, \"wrong\": %.0f, \"seconds\": [", e.bytes, all_wrong);
        for (int i = 0; i < e.ranks * e.ranks; i++)
            printf("%s%.9g", i % e.ranks ? ", " : i ? "], [" : "[", all[i]);
        puts("]]}");
    }
    MPI_Finalize();
    return all_wrong > 0;
}
