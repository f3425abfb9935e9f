/* How many messages one after the other a collective operation takes.  The MPI's own algorithm is not visible from outside,
 * so this is the model: the algorithms and limits of R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective
 * Communication Operations in MPICH, IJHPCA 19 (2005).  P processes, b bytes, log = ceil(log2 P):
 *
 *     operation           algorithm                                       steps of L             b: limit
 *     Barrier             dissemination                                   log
 *     Bcast               binomial tree                                   log                    message: to 12 KiB
 *                         scatter, allgather by recursive doubling        2 log                  below 512 KiB
 *                         scatter, allgather by ring                      log + P - 1
 *     Reduce              binomial tree                                   log                    vector: to 2 KiB
 *                         reduce-scatter, gather                          2 log
 *     Allreduce           recursive doubling                              log                    vector: to 2 KiB
 *                         reduce-scatter, allgather                       2 log
 *     Gather, Scatter     binomial tree                                   log
 *     Gatherv, Scatterv   each with the root                              1
 *     Allgather(v)        recursive doubling                              log                    result: below 512 KiB
 *                         ring                                            P - 1
 *     Alltoall            Bruck                                           log                    one block: to 256 bytes
 *                         pairwise exchange                               P - 1
 *     Alltoallv, -w       pairwise exchange                               P - 1
 *     Reduce_scatter      recursive halving                               log
 *     Scan, Exscan        recursive doubling                              log
 *     Neighbor_*          each with its neighbours                        1
 */
#include "latency.h"

enum { BCAST_SHORT = 12288, BCAST_LONG = 524288, REDUCE_SHORT = 2048, GATHER_LONG = 524288, BLOCK_SHORT = 256 };

static int log2_up(int size)
{
    int steps = 0;
    while (1ll << steps < size)
        steps++;
    return steps;
}

/* Ranks below one in a binomial tree: those that one bit below its own lowest one leads to. */
static int children(int size, int relative)
{
    int count = 0;
    for (long long bit = 1; relative + bit < size && !(relative & bit); bit <<= 1)
        count++;
    return count;
}

/* All send and receive in each step. */
static lat_plan together(int steps) { return (lat_plan){steps, 0, steps, steps, LAT_ALL}; }

/* From the root down a tree, and then, where `more`, together.  The o of the ranks between is waited for, not spent. */
static lat_plan down(int size, int relative, int more)
{
    int tree = log2_up(size), branches = children(size, relative);
    if (relative == 0)
        return (lat_plan){0, 0, branches + more, more, LAT_NOBODY};
    return (lat_plan){tree + more, tree - 1, branches + more, 1 + more, LAT_ROOT};
}

static lat_plan up(int size, int relative, int more)
{
    int tree = log2_up(size), branches = children(size, relative);
    if (relative == 0)
        return (lat_plan){more + tree, tree - 1, more, more + branches, LAT_OTHERS};
    return (lat_plan){0, 0, 1 + more, branches + more, LAT_NOBODY};    /* it only has to be rid of its part */
}

lat_plan lat_steps(lat_shape shape, int size, int relative, int64_t bytes)
{
    int tree = log2_up(size);
    if (size < 2)
        return (lat_plan){0, 0, 0, 0, LAT_NOBODY};
    switch (shape) {
    case LAT_BCAST:
        return down(size, relative, bytes <= BCAST_SHORT ? 0 : bytes < BCAST_LONG ? tree : size - 1);
    case LAT_SCATTER:
        return down(size, relative, 0);
    case LAT_REDUCE:
        return up(size, relative, bytes <= REDUCE_SHORT ? 0 : tree);
    case LAT_GATHER:
        return up(size, relative, 0);
    case LAT_SCATTERV:
        return relative ? (lat_plan){1, 0, 0, 1, LAT_ROOT} : (lat_plan){0, 0, size - 1, 0, LAT_NOBODY};
    case LAT_GATHERV:
        return relative ? (lat_plan){0, 0, 1, 0, LAT_NOBODY} : (lat_plan){1, 0, 0, size - 1, LAT_OTHERS};
    case LAT_ALLREDUCE:
        return together(bytes <= REDUCE_SHORT ? tree : 2 * tree);
    case LAT_ALLGATHER:
        return together(bytes < GATHER_LONG ? tree : size - 1);
    case LAT_ALLTOALL:
        return together(bytes <= BLOCK_SHORT ? tree : size - 1);
    case LAT_ALLTOALLV:
        return together(size - 1);
    case LAT_SCAN: {
        lat_plan plan = together(tree);
        plan.depends = LAT_LOWER;
        return plan;
    }
    default:        /* Barrier, Reduce_scatter; the neighbours' are counted where the topology is known */
        return together(tree);
    }
}
