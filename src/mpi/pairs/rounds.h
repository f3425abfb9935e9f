/* Messages between the pairs of a round (tournament.h). */
#ifndef PAIRS_ROUNDS_H
#define PAIRS_ROUNDS_H

#include <stdbool.h>

typedef struct {
    int rank, ranks;
    void *out, *in;         /* out: written by pingpong_write() */
    int bytes;
    bool verifying;         /* each message of a round has its number, and is looked at */
    long arrived;           /* messages that were looked at */
    double wrong;           /* bytes of them that are not the sender's, or of another message */
} pairs_ends;

/* One round: `messages` of them from the lower rank of each pair to the higher, each answered by an empty one, then as many the
 * other way.  Returns the seconds of those that this process sends, answers among them; 0 if it rests. */
double pairs_round(pairs_ends *, int round, long messages);

#endif
