#ifndef PLUMBLINE_CORES_H
#define PLUMBLINE_CORES_H

#include <semaphore.h>

#include "handover.h"
#include "plumbline.h"

/* What was found of one core, alone and while all of them work. */
typedef struct { double clock, additions; } core_speed;     /* Hz, per cycle; not a number if not known, or not looked at */

/* Data of a team. */
typedef struct {
    pl_buffers *buffers;
    int threads;
    pl_relay **relay;           /* of each thread, for the pairs in which it is the lower one; on a page that it touched first */
    uint32_t *epoch;            /* how many rounds each thread has been through: all equal */
    pl_relay_length length;
    double *seconds;            /* of a handover, of each pair: the sum over the passes in which both answered ... */
    long *answered, *silent;    /* ... and how many passes these were, and how many others; pairs as in cores_pair() */
    core_speed *one, *all;      /* of each thread */
    sem_t *turn;                /* of each thread, to sleep on while another one is measured */
    int sample;                 /* the next one: what is looked at sparsely moves on from sample to sample */
} cores_data;

/* A pass of one thread: the variants; before the first one all forget. */
typedef void cores_loop(cores_data *, int thread);
void cores_forget(cores_data *, int thread);
cores_loop cores_together, cores_alone, cores_clock;

/* Position of a pair in the upper triangle, row by row; a < b. */
static inline size_t cores_pair(int threads, int a, int b)
{
    return (size_t)a * (size_t)(2 * threads - a - 1) / 2 + (size_t)(b - a - 1);
}

/* What is looked at sparsely, so that many cores take no longer than some. */
enum { CORES_PAIRS_ALONE = 16, CORES_ALONE = 8 };

/* How many pairs are alone in a sample, and the k-th of them. */
int cores_pairs_alone(int threads);
void cores_pair_alone(int threads, int sample, int k, int *lower, int *upper);

/* Whose clock is measured alone in a sample: so many, the k-th of them. */
int cores_looked_at(int threads);
int cores_looked_at_is(int threads, int sample, int k);

#endif
