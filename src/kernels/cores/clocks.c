/* The clock of cores, each alone while all others sleep, and all at once: turbo, throttling, a power cap. */
#include <math.h>

#include "kernel.h"

enum { STEADY = 2, MOST = 37 };     /* readings: in a row that do not rise; of all, 0.3 s */
static const double measuring = 1e-3, warming = 8e-3;

/* A core that wakes takes milliseconds to reach its clock, in a cloud tens of them: it works until that rises no more. */
static core_speed measured(void)
{
    double highest = pl_core_clock(warming);
    for (int reading = 1, steady = 0; steady < STEADY && reading < MOST; reading++) {
        const double now = pl_core_clock(warming);
        steady = now > 1.01 * highest ? 0 : steady + 1;
        highest = fmax(highest, now);
    }
    const double clock = pl_core_clock(measuring);
    return (core_speed){clock, pl_core_additions(measuring, clock)};
}

int cores_looked_at(int threads) { return threads < CORES_ALONE ? threads : CORES_ALONE; }

int cores_looked_at_is(int threads, int sample, int k)
{
    return (int)(((long)sample * cores_looked_at(threads) + k) % threads);
}

static void sleep_until(sem_t *turn)
{
    while (sem_wait(turn))      /* a signal */
        ;
}

/* One after the other; who is not at it sleeps, and would spin at a barrier. */
static void one_at_a_time(cores_data *d, int thread)
{
    const int count = cores_looked_at(d->threads);
    int place = 0;
    while (place < count && cores_looked_at_is(d->threads, d->sample, place) != thread)
        place++;
    d->one[thread] = (core_speed){NAN, NAN};
    if (place < count) {
        if (place > 0)
            sleep_until(&d->turn[thread]);
        d->one[thread] = measured();
        if (place + 1 < count)
            sem_post(&d->turn[cores_looked_at_is(d->threads, d->sample, place + 1)]);
    }
    if (place == count - 1)
        for (int i = 0; i < d->threads; i++)
            if (i != thread)
                sem_post(&d->turn[i]);
    if (place != count - 1)
        sleep_until(&d->turn[thread]);
}

/* All of them; none stops before the last one was measured. */
void cores_clock(cores_data *d, int thread)
{
    one_at_a_time(d, thread);
    pl_barrier();
    d->all[thread] = measured();
    pl_barrier();
}
