/* Core-to-core latency: a cache line handed to and fro between two cores, for all pairs of them.
 *
 * All pairs of a round at once (tournament.h): n cores take n - 1 rounds and not n (n - 1) / 2.  Whether pairs disturb each
 * other is looked at: `alone` does some of them again while all other threads wait. */
#include <math.h>

#include "kernel.h"
#include "tournament.h"

/* The side that ends last knows that all was handed over. */
static void hand_over(cores_data *d, int thread, int partner)
{
    const int lower = thread < partner ? thread : partner, side = thread != lower;
    const double seconds = pl_hand_over(d->relay[lower], side, d->epoch[thread], d->length);
    if (side == 0)
        return;
    const size_t pair = cores_pair(d->threads, lower, thread);
    if (isnan(seconds))
        d->silent[pair]++;
    else {
        d->seconds[pair] += seconds;
        d->answered[pair]++;
    }
}

void cores_forget(cores_data *d, int thread)
{
    for (int lower = 0; lower < thread; lower++) {
        const size_t pair = cores_pair(d->threads, lower, thread);
        d->seconds[pair] = 0;
        d->answered[pair] = d->silent[pair] = 0;
    }
}

void cores_together(cores_data *d, int thread)
{
    for (int round = 0; round < pl_tournament_rounds(d->threads); round++) {
        const int partner = pl_tournament_partner(d->threads, thread, round);
        d->epoch[thread]++;
        pl_barrier();
        if (partner >= 0)
            hand_over(d, thread, partner);
    }
    pl_barrier();
}

int cores_pairs_alone(int threads) { return threads / 2 < CORES_PAIRS_ALONE ? threads / 2 : CORES_PAIRS_ALONE; }

/* Of the pairs of one round, spread evenly; instead of one that rests, its neighbour. */
void cores_pair_alone(int threads, int sample, int k, int *lower, int *upper)
{
    const int rounds = pl_tournament_rounds(threads);
    int member = (sample / rounds + k * threads / cores_pairs_alone(threads)) % threads;
    if (pl_tournament_partner(threads, member, sample % rounds) < 0)
        member = (member + 1) % threads;
    const int partner = pl_tournament_partner(threads, member, sample % rounds);
    *lower = member < partner ? member : partner;
    *upper = member < partner ? partner : member;
}

void cores_alone(cores_data *d, int thread)
{
    for (int k = 0; k < cores_pairs_alone(d->threads); k++) {
        int lower, upper;
        cores_pair_alone(d->threads, d->sample, k, &lower, &upper);
        d->epoch[thread]++;
        pl_barrier();
        if (thread == lower || thread == upper)
            hand_over(d, thread, thread == lower ? upper : lower);
    }
    pl_barrier();
}
