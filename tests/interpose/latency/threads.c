/* Four threads of each of two processes exchange messages at once; each of them in its own order and after its time. */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, MESSAGES = 100 };

static int rank;
static int64_t latency;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *exchange(void *argument)
{
    int tag = (int)(intptr_t)argument, peer = 1 - rank;
    for (int64_t i = 0; i < MESSAGES; i++) {
        int64_t out[2] = {now(), i}, in[2];
        MPI_Request request;
        MPI_Status status;
        if (tag % 2) {
            MPI_Sendrecv(out, 2, MPI_INT64_T, peer, tag, in, 2, MPI_INT64_T, peer, tag, MPI_COMM_WORLD, &status);
        } else {
            MPI_Irecv(in, 2, MPI_INT64_T, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &request);
            MPI_Send(out, 2, MPI_INT64_T, peer, tag, MPI_COMM_WORLD);
            MPI_Waitall(1, &request, &status);
        }
        if (in[1] != i || now() - in[0] < latency) {
            fprintf(stderr, "rank %d: message %lld came as %lld after %lld ns\n", rank, (long long)in[1], (long long)i,
                    (long long)(now() - in[0]));
            sleep(1);       /* launchers lose what is said just before */
        MPI_Abort(MPI_COMM_WORLD, 3);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const char *text = getenv("PLUMBLINE_LATENCY_US");
    int provided;
    pthread_t threads[THREADS];
    latency = text ? (int64_t)(atof(text) * 1000) : 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (intptr_t i = 0; i < THREADS && provided == MPI_THREAD_MULTIPLE; i++)
        pthread_create(&threads[i], NULL, exchange, (void *)i);
    for (int i = 0; i < THREADS && provided == MPI_THREAD_MULTIPLE; i++)
        pthread_join(threads[i], NULL);
    if (rank == 0)
        puts(provided == MPI_THREAD_MULTIPLE ? "right" : "this MPI has no MPI_THREAD_MULTIPLE");
    MPI_Finalize();
    return 0;
}
