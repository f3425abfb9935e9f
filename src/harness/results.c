/* What the threads' reductions leave, a line apart. */
#include <stdlib.h>

#include "internal.h"

static size_t bytes_of_all(void) { return (size_t)pl_allowed_cpus().count * sizeof(pl_result); }

pl_result *pl_results_create(void)
{
    pl_result *all = aligned_alloc(PL_LINE, bytes_of_all());
    if (!all)
        pl_fail("no memory for the results of %d threads", pl_allowed_cpus().count);
    pl_results_poison(all);
    return all;
}

void pl_results_poison(pl_result *all) { memset(all, 0xFF, bytes_of_all()); }   /* not a number */
