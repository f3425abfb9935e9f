#include "rounds.h"

/* The places around the circle, an odd number, and the one in its middle. */
static int circle(int ranks) { return ranks % 2 ? ranks : ranks - 1; }

int pairs_rounds(int ranks) { return circle(ranks); }

int pairs_partner(int ranks, int rank, int round)
{
    const int places = circle(ranks), middle = places;
    int partner;
    if (rank == middle)
        partner = (int)((long)round * (places + 1) / 2 % places);    /* that whose place is opposite to itself: 2 i = round */
    else if ((partner = (round - rank + places) % places) == rank)
        partner = middle;
    return partner < ranks ? partner : -1;
}
