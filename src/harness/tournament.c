#include "tournament.h"

/* The places around the circle, an odd number, and the one in its middle. */
static int circle(int members) { return members % 2 ? members : members - 1; }

int pl_tournament_rounds(int members) { return circle(members); }

int pl_tournament_partner(int members, int member, int round)
{
    const int places = circle(members), middle = places;
    int partner;
    if (member == middle)
        partner = (int)((long)round * (places + 1) / 2 % places);    /* that whose place is opposite to itself: 2 i = round */
    else if ((partner = (round - member + places) % places) == member)
        partner = middle;
    return partner < members ? partner : -1;
}
