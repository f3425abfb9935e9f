#include "plumbline_latency.h"

#include <math.h>

#include "latency.h"

__attribute__((visibility("default"))) int plumbline_latency_set(double us)
{
    if (!lat_set.on || !lat_set.shadowed || !(us >= 0 && us <= 1e6))
        return -1;
    lat_lock();
    lat_set.latency = (ns)llround(us * 1000);
    lat_set.stamped = lat_set.latency > 0 || lat_set.gap > 0;
    lat_unlock();
    return 0;
}
