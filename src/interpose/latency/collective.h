/* What collective.c begins and entered.c ends. */
#ifndef PLUMBLINE_LATENCY_COLLECTIVE_H
#define PLUMBLINE_LATENCY_COLLECTIVE_H

#include "latency.h"

typedef struct {
    lat_shape shape;
    int root;               /* -1: none */
    int entries;            /* that are here one by one: of the neighbours, or of all, at the root of Gatherv and Scatterv */
    int64_t bytes;
    lat_comm *comm;         /* NULL: passed through */
    lat_plan plan;
} lat_call;

struct lat_collective {
    lat_call c;
    ns own, latest;         /* entries: mine; of those that it depends on */
    ns each[];              /* c.entries of them, and for each its count and displacement */
};

ns lat_delay_of(const lat_plan *);
ns lat_latest(const ns *entries, int n);
ns lat_was_here(const struct lat_collective *, ns absent, ns arrival);

#endif
