/* What collective.c begins and entered.c ends. */
#ifndef PLUMBLINE_LATENCY_COLLECTIVE_H
#define PLUMBLINE_LATENCY_COLLECTIVE_H

#include "latency.h"

typedef struct {
    lat_shape shape;
    int root, indegree;     /* root -1: none */
    int64_t bytes;
    lat_comm *comm;         /* NULL: passed through */
    lat_plan plan;
} lat_call;

struct lat_collective {
    lat_call c;
    ns own, latest;         /* entries: mine; of those that it depends on */
    ns around[];            /* of the neighbours */
};

ns lat_delay_of(const lat_plan *);
ns lat_latest(const ns *entries, int n);
ns lat_was_here(const struct lat_collective *, ns absent, ns arrival);

#endif
