/* One process: what pl_processes is until an MPI program says otherwise. */
#include <stdlib.h>

#include "internal.h"

static void meet(void) {}
static double own(double x) { return x; }
static void collect(int own, int *all) { all[0] = own; }

pl_process_group pl_processes = {
    .ranks = 1, .on_node = 1, .meet = meet, .greatest = own, .sum = own, .collect = collect, .stop = exit};

bool pl_leads(void) { return pl_processes.rank < pl_processes.ranks / 2; }

int pl_partner(void)
{
    const int half = pl_processes.ranks / 2;
    return pl_leads() ? pl_processes.rank + half : pl_processes.rank - half;
}
