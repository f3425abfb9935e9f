/* Patterns of messages over nodes: who sends to whom, and the exchange itself; on a machine and on a simulated network.
 *
 * The ranks of a node come one after the other; a rank exchanges messages with the ranks at its place on other nodes, so that
 * none stays within a node. */
#ifndef PATTERNS_TRAFFIC_H
#define PATTERNS_TRAFFIC_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    TRAFFIC_PAIR,           /* two nodes, both ways, while all others are silent: a pair in each round */
    TRAFFIC_ONEWAY,         /* the same one way */
    TRAFFIC_BISECTION,      /* each node of the first half with that at its place in the second half, both ways, all at once */
    TRAFFIC_RING,           /* each node with the one before and the one behind it, all at once */
    TRAFFIC_GRID2,          /* with its neighbours along each dimension of a grid, periodic */
    TRAFFIC_GRID3,
    TRAFFIC_MATCHINGS,      /* all nodes in pairs at once, both ways: other pairs in each round, by chance */
    TRAFFIC_INCAST,         /* all nodes to one, another one in each round */
    TRAFFIC_ALLTOALL,       /* each node to all others */
    TRAFFIC_PATTERNS
} traffic_pattern;

extern const char *const traffic_names[TRAFFIC_PATTERNS];

typedef struct {
    int rank, per_node;     /* ranks of a node */
    int nodes;              /* that take part, the first ones: 2 or more */
    int used;               /* ranks of each of them that take part, the first ones */
    int rounds;             /* at most; 0: every pair of the halves, every matching in which no pair meets again, every target */
    int streams;            /* messages that are outstanding at once between two nodes that are alone */
    long seed;              /* of the matchings */
} traffic_job;

/* What a rank does in a round, in this order; -1: nothing. */
typedef struct {
    int count;
    int *to, *from;         /* room for traffic_messages() of them */
    bool counts;            /* its time is that of its node; a node that only sends has none of its own */
    int rank;               /* that does them */
} traffic_steps;

int traffic_rounds(traffic_pattern, const traffic_job *);
int traffic_messages(traffic_pattern, const traffic_job *);     /* that a rank sends in a round; of INCAST, those that its target gets */
int traffic_slots(traffic_pattern, const traffic_job *, size_t stride);    /* messages outstanding, at most: 16 MiB of them and more */
int traffic_dimensions(traffic_pattern);                        /* of a grid; 0 of other patterns */
bool traffic_fits(traffic_pattern, int nodes);                  /* whether each dimension of the grid has two nodes and more */
void traffic_plan(traffic_pattern, const traffic_job *, int round, traffic_steps *);

typedef struct {
    void *out;              /* written by pingpong_write() */
    unsigned char *in;      /* slots, `stride` bytes apart: so many messages are outstanding at most */
    size_t bytes, stride;
    int slots;
    MPI_Request *request;   /* 2 * slots */
    bool verifying;         /* messages have the number of their repeat, and are looked at */
    uint64_t written;       /* the number that stands in `out` */
    long arrived;           /* messages that were looked at */
    double wrong;           /* bytes of them that are not the sender's, or of another repeat */
} traffic_ends;

/* A round: all begin at once (MPI_Barrier); `repeats` times its messages.  The seconds of this process; 0 where it rests. */
double traffic_round(const traffic_steps *, traffic_ends *, long repeats);

#endif
