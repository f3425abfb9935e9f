/* Messages between all pairs of processes, in rounds: all pairs of a round at once, and no process in two of them.
 *
 * The circle method: one process keeps its place, the others move on by one from round to round.  Each pair meets in exactly
 * one of ranks - 1 rounds; of an odd number of processes one rests in each of as many rounds. */
#ifndef PAIRS_ROUNDS_H
#define PAIRS_ROUNDS_H

int pairs_rounds(int ranks);
int pairs_partner(int ranks, int rank, int round);      /* -1: it rests */

typedef struct {
    int rank, ranks;
    void *out, *in;
    int bytes;
} pairs_ends;

/* One round: `passes` messages from the lower rank of each pair to the higher, each answered by an empty one, then as many the
 * other way.  Returns the seconds of those that this process sends, answers among them; 0 if it rests. */
double pairs_round(const pairs_ends *, int round, long passes);

#endif
