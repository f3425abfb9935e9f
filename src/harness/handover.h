/* Core-to-core latency: a cache line handed to and fro between two threads, or processes that share memory.
 *
 * Which caches two cores share decides it, whatever the topology says: 20 to 40 ns below one last-level cache, 100 to 250 ns
 * beyond it, less between two hardware threads of one core. */
#ifndef PLUMBLINE_HANDOVER_H
#define PLUMBLINE_HANDOVER_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

/* The line, 0 at first; with its neighbour, which prefetchers bring along.  A new `epoch`, above all before, for each use,
 * and all of an epoch have come back before the next one. */
typedef struct { alignas(128) _Atomic uint64_t turn; } pl_relay;

typedef struct {
    int batches, handovers;     /* of a batch, there and back */
    double patience;            /* seconds that the other side may be silent */
} pl_relay_length;

/* Seconds of one handover, one way: the least of the batches.  Not a number if the other side was silent for too long, as
 * one that was stopped, or waits for this very CPU.  Both sides, 0 and 1, call with equal arguments. */
double pl_hand_over(pl_relay *, int side, uint32_t epoch, pl_relay_length);

/* Side 1 rests, with as little of its core's work as a thread that waits can do, until side 0 calls; after a handover that
 * went well, in the same epoch. */
void pl_relay_rest(pl_relay *, uint32_t epoch, double patience);
void pl_relay_call(pl_relay *, uint32_t epoch);

/* How many of the lines a party of `members` needs, and who is whose partner in a round: the tree of neighbours, of pairs of
 * pairs, and so on, all pairs of a round at once.  PL_MOST_ROUNDS at most, as many as pl_findings has room for. */
int pl_relay_rounds(int members);
int pl_relay_partner(int member, int round);    /* may be beyond the members */

#endif
