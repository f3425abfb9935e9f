#include <stdlib.h>

#include "runtime.h"

/* Between the sorted values, linearly: as plumbline.model.uncertainty does it. */
static double quantile(const double *sorted, int n, double share)
{
    const double at = share * (n - 1);
    const int below = (int)at, above = below + 1 < n ? below + 1 : below;
    return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

pl_summary pl_summary_of(double *samples, int n)
{
    qsort(samples, (size_t)n, sizeof *samples, pl_ascending);
    const double median = quantile(samples, n, 0.5);
    return (pl_summary){.least = samples[0], .median = median,
                        .spread = 0.7413 * (quantile(samples, n, 0.75) - quantile(samples, n, 0.25)) / median};
}
