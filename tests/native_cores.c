/* A team of more threads than any test machine may have CPUs: every pair meets once in a pass, answers or is silent, and nobody
 * waits for ever.  Says what is wrong, or nothing. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernel.h"

enum { MOST = 9, PASSES = 2 };
static pthread_barrier_t barrier;
static cores_data data;
static cores_loop *loop;

void pl_barrier(void) { pthread_barrier_wait(&barrier); }

double pl_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A core needs 20 ms to reach its clock. */
double pl_core_clock(double seconds)
{
    static _Thread_local double worked = 0;
    return (worked += seconds) < 20e-3 ? 2e9 : 3e9;
}
double pl_core_additions(double seconds, double clock) { return seconds * clock > 0 ? 4 : 0; }

static void *thread(void *number)
{
    cores_forget(&data, (int)(long)number);
    for (int pass = 0; pass < PASSES; pass++)
        loop(&data, (int)(long)number);
    return NULL;
}

static void run(cores_loop *what, int threads)
{
    pthread_t id[MOST];
    loop = what;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (long i = 0; i < threads; i++)
        pthread_create(&id[i], NULL, thread, (void *)i);
    for (int i = 0; i < threads; i++)
        pthread_join(id[i], NULL);
    pthread_barrier_destroy(&barrier);
}

int main(void)
{
    static pl_relay line[MOST];
    static uint32_t epoch[MOST];
    static double seconds[MOST * MOST];
    static long answered[MOST * MOST], silent[MOST * MOST];
    static core_speed one[MOST], all[MOST];
    static sem_t turn[MOST];
    pl_relay *relay[MOST];
    for (int i = 0; i < MOST; i++) {
        relay[i] = &line[i];
        sem_init(&turn[i], 0, 0);
    }
    for (int threads = 2; threads <= MOST; threads++)
        for (int sample = 0; sample < 3; sample++) {
            const size_t pairs = cores_pair(threads, threads - 1, threads);
            data = (cores_data){.threads = threads, .relay = relay, .epoch = epoch, .length = {2, 5, 1e-4}, .seconds = seconds,
                                .answered = answered, .silent = silent, .one = one, .all = all, .turn = turn, .sample = sample};
            run(cores_together, threads);
            for (size_t pair = 0; pair < pairs; pair++)
                if (answered[pair] + silent[pair] != PASSES || (answered[pair] && !(seconds[pair] > 0)))
                    printf("%d threads, pair %zu: %ld answers, %ld silent\n", threads, pair, answered[pair], silent[pair]);
            run(cores_alone, threads);
            long met = 0;
            for (size_t pair = 0; pair < pairs; pair++)
                met += answered[pair] + silent[pair];
            if (met < PASSES || met % PASSES || met > PASSES * cores_pairs_alone(threads))
                printf("%d threads: %ld pairs alone\n", threads, met);
            run(cores_clock, threads);
            int alone = 0;
            for (int i = 0; i < threads; i++) {
                alone += one[i].clock == 3e9 && one[i].additions == 4;
                if (all[i].clock != 3e9)
                    printf("%d threads: no clock of thread %d\n", threads, i);
            }
            if (alone != cores_looked_at(threads))
                printf("%d threads: %d alone\n", threads, alone);
        }
    return 0;
}
