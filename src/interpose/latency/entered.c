/* When a collective's result may be seen: its steps after the last of those entered that it depends on. */
#include "collective.h"

enum { FRESH = 2000 };      /* ns between two looks */

/* One step: L, or the rest of g where that is longer than L and both o. */
ns lat_delay_of(const lat_plan *plan)
{
    ns step = lat_set.gap - 2 * lat_set.overhead;
    step = step > lat_set.latency ? step : lat_set.latency;
    return plan->steps * step + plan->between * lat_set.overhead;
}

ns lat_latest(const ns *entries, int n)
{
    ns latest = INT64_MIN;
    for (int i = 0; i < n; i++)
        latest = entries[i] > latest ? entries[i] : latest;
    return latest;
}

/* Who comes after those that it depends on finds everything there already; who came before was waiting when it came. */
ns lat_was_here(const struct lat_collective *x, ns absent, ns arrival)
{
    ns at = x->latest + lat_least_time(LAT_TIME_COLLECTIVE + (int)x->c.shape, x->c.bytes);
    if (at < absent)
        at = absent;
    return at < arrival ? at : arrival;
}

ns lat_collective_visible(lat_pending *e)
{
    struct lat_collective *x = e->collective;
    int done;
    if (x->c.plan.depends == LAT_NOBODY)
        return e->arrival;
    if (!e->known) {
        PMPI_Test(&e->shadow, &done, MPI_STATUS_IGNORE);
        if (!done)
            return NOT_YET;
        e->known = true;
        if (x->c.shape == LAT_NEIGHBORS || x->c.shape == LAT_GATHERV)
            x->latest = lat_latest(x->each, x->c.entries);
        if (e->absent >= x->latest && e->arrival - e->absent < FRESH)
            lat_learn_time(LAT_TIME_COLLECTIVE + (int)x->c.shape, x->c.bytes, e->arrival - x->latest);
    }
    ns from = lat_set.stamped ? lat_was_here(x, e->absent, e->arrival) : e->arrival;
    return from + lat_delay_of(&x->c.plan);
}

int lat_collective_receives(const lat_pending *e) { return e->collective->c.plan.receives; }
