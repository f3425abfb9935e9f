/* Messages between the pairs of a round (tournament.h). */
#ifndef PAIRS_ROUNDS_H
#define PAIRS_ROUNDS_H

typedef struct {
    int rank, ranks;
    void *out, *in;
    int bytes;
} pairs_ends;

/* One round: `messages` of them from the lower rank of each pair to the higher, each answered by an empty one, then as many the
 * other way.  Returns the seconds of those that this process sends, answers among them; 0 if it rests. */
double pairs_round(const pairs_ends *, int round, long messages);

#endif
