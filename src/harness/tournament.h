/* All pairs of a party, in rounds: all pairs of a round at once, and no member in two of them.
 *
 * The circle method: one member keeps its place, the others move on by one from round to round.  Each pair meets in exactly
 * one of members - 1 rounds; of an odd number of members one rests in each of as many rounds. */
#ifndef PLUMBLINE_TOURNAMENT_H
#define PLUMBLINE_TOURNAMENT_H

int pl_tournament_rounds(int members);
int pl_tournament_partner(int members, int member, int round);      /* -1: it rests */

#endif
