#include "latency.h"

#include <stdio.h>
#include <stdlib.h>

enum { COUNTS = sizeof(lat_counts) / sizeof(int64_t) };

static void report_passed(int rank)
{
    int kinds = lat_passed_kinds();
    int64_t *mine = lat_allocate((size_t)kinds * sizeof *mine), *all = lat_allocate((size_t)kinds * sizeof *all);
    for (int i = 0; i < kinds; i++)
        mine[i] = lat_passed_count(i);
    PMPI_Reduce(mine, all, kinds, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        const char *before = " ";
        char *calls = NULL;
        size_t length;
        FILE *list = open_memstream(&calls, &length);
        for (int i = 0; list && i < kinds; i++)
            if (all[i]) {
                fprintf(list, "%s%s %lld", before, lat_passed_name(i), (long long)all[i]);
                before = ", ";
            }
        /* In one piece: what an MPI or a launcher says would come in between. */
        if (list && fclose(list) == 0)
            fprintf(stderr, "plumbline: latency: passed through, nothing added:%s\n", length ? calls : " no call");
        free(calls);
    }
    free(mine);
    free(all);
}

void lat_report(void)
{
    int rank, size;
    lat_counts sum;
    if (!lat_set.report)
        return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        fprintf(stderr, "plumbline: latency: L %g us, o %g us, g %g us on %d rank%s\n", lat_set.latency / 1e3,
                lat_set.overhead / 1e3, lat_set.gap / 1e3, size, size == 1 ? "" : "s");
    if (lat_set.latency + lat_set.overhead + lat_set.gap == 0) {
        if (rank == 0)
            fputs("plumbline: latency: nothing to add: all calls were passed through\n", stderr);
        return;
    }
    PMPI_Reduce(&lat_count, &sum, COUNTS, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        fprintf(stderr, "plumbline: latency: messages: %lld sent (%lld synchronous), %lld received; kept back for %.1f us "
                        "and by the gap for %.1f us in all\n",
                (long long)sum.sent, (long long)sum.synchronous, (long long)sum.received, sum.waited / 1e3, sum.queued / 1e3);
        if (sum.unstamped)
            fprintf(stderr, "plumbline: latency: %lld messages were delayed from when they were seen, not from when they were "
                            "sent\n", (long long)sum.unstamped);
        fprintf(stderr, "plumbline: latency: collectives: %lld calls, %lld steps\n", (long long)sum.collectives,
                (long long)sum.steps);
        if (sum.foreign || sum.foreign_collectives)
            fprintf(stderr, "plumbline: latency: nothing added to %lld sends and receives with processes of another program, "
                            "and to %lld collectives there and on intercommunicators\n",
                    (long long)sum.foreign, (long long)sum.foreign_collectives);
        if (lat_clock_error())
            fprintf(stderr, "plumbline: latency: the nodes' clocks agree within %.1f us\n", lat_clock_error() / 1e3);
    }
    report_passed(rank);
}
