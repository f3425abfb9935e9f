/* Least time that the MPI takes, as seen so far, by kind and size of message. */
#include "latency.h"

static ns least_time[LAT_TIME_COLLECTIVE + LAT_COLLECTIVES][64];

static ns *least(int kind, int64_t bytes)
{
    return &least_time[kind][bytes > 0 ? 64 - __builtin_clzll((unsigned long long)bytes) : 0];
}

ns lat_least_time(int kind, int64_t bytes) { return *least(kind, bytes); }

void lat_learn_time(int kind, int64_t bytes, ns took)
{
    ns *known = least(kind, bytes);
    if (took > 0 && (!*known || took < *known))
        *known = took;
}
