#include "traffic.h"

#include <stdlib.h>
#include <string.h>

#include "exchanges.h"
#include "plumbline.h"
#include "tournament.h"

enum { TAG = 1, MOST_DIMENSIONS = 3 };

const char *const traffic_names[TRAFFIC_PATTERNS] = {"pair", "oneway", "bisection", "ring", "grid2", "grid3", "matchings", "incast",
                                                     "alltoall"};

/* --- how many -------------------------------------------------------------------------------------------------- */

int traffic_dimensions(traffic_pattern pattern)
{
    return pattern == TRAFFIC_RING ? 1 : pattern == TRAFFIC_GRID2 ? 2 : pattern == TRAFFIC_GRID3 ? 3 : 0;
}

static void sides(int nodes, int dimensions, int *side)
{
    memset(side, 0, MOST_DIMENSIONS * sizeof *side);
    MPI_Dims_create(nodes, dimensions, side);
}

bool traffic_fits(traffic_pattern pattern, int nodes)
{
    int side[MOST_DIMENSIONS], dimensions = traffic_dimensions(pattern);
    if (dimensions)
        sides(nodes, dimensions, side);
    for (int d = 0; d < dimensions; d++)
        if (side[d] < 2)
            return false;
    return true;
}

static int there_are(traffic_pattern pattern, int nodes)
{
    switch (pattern) {
    case TRAFFIC_PAIR:
    case TRAFFIC_ONEWAY: return nodes / 2;
    case TRAFFIC_MATCHINGS: return pl_tournament_rounds(nodes);
    case TRAFFIC_INCAST: return nodes;
    default: return 1;
    }
}

int traffic_rounds(traffic_pattern pattern, const traffic_job *job)
{
    const int all = there_are(pattern, job->nodes);
    return job->rounds && job->rounds < all ? job->rounds : all;
}

int traffic_messages(traffic_pattern pattern, const traffic_job *job)
{
    if (pattern == TRAFFIC_INCAST || pattern == TRAFFIC_ALLTOALL)
        return job->nodes - 1;
    if (pattern == TRAFFIC_PAIR || pattern == TRAFFIC_ONEWAY)
        return job->streams;
    const int dimensions = traffic_dimensions(pattern);
    return dimensions ? 2 * dimensions : 1;
}

int traffic_slots(traffic_pattern pattern, const traffic_job *job, size_t stride)
{
    const int all = traffic_messages(pattern, job), room = (int)(((size_t)1 << 24) / stride);
    const bool many = pattern == TRAFFIC_INCAST || pattern == TRAFFIC_ALLTOALL;
    return !many || all < room ? all : room > 8 ? room : 8;
}

/* --- who with whom --------------------------------------------------------------------------------------------- */

/* Every so many-th of all pairs or targets, evenly, where there are more of them than rounds. */
static int chosen(traffic_pattern pattern, const traffic_job *job, int round)
{
    return (int)((long)round * there_are(pattern, job->nodes) / traffic_rounds(pattern, job));
}

static void add(traffic_steps *s, const traffic_job *job, int to, int from)
{
    const int place = job->rank % job->per_node;
    s->to[s->count] = to < 0 ? -1 : to * job->per_node + place;
    s->from[s->count++] = from < 0 ? -1 : from * job->per_node + place;
}

static void with_neighbours(traffic_steps *s, const traffic_job *job, int node, int dimensions)
{
    int side[MOST_DIMENSIONS];
    sides(job->nodes, dimensions, side);
    for (int d = dimensions - 1, stride = 1; d >= 0; stride *= side[d--]) {
        const int at = node / stride % side[d], base = node - at * stride;
        const int up = base + (at + 1) % side[d] * stride, down = base + (at + side[d] - 1) % side[d] * stride;
        add(s, job, up, down);
        add(s, job, down, up);
    }
}

/* The members of the tournament are the nodes in an order by chance: each of its rounds is a matching by chance, and no pair is in
 * two of them, so that a slow node spoils one matching of each other node at most. */
static int partner_in_matching(const traffic_job *job, int node, int round)
{
    int *const member = calloc((size_t)job->nodes, sizeof *member), place = 0;
    if (!member)
        return -1;
    for (int i = 0; i < job->nodes; i++)
        member[i] = i;
    for (int i = job->nodes - 1; i > 0; i--) {
        const int j = (int)(pl_random_bits(((uint64_t)job->seed << 32) + (uint64_t)i) % (uint64_t)(i + 1)), other = member[j];
        member[j] = member[i];
        member[i] = other;
    }
    while (place < job->nodes - 1 && member[place] != node)
        place++;
    const int partner = pl_tournament_partner(job->nodes, place, round), found = partner < 0 ? -1 : member[partner];
    free(member);
    return found;
}

void traffic_plan(traffic_pattern pattern, const traffic_job *job, int round, traffic_steps *s)
{
    const int node = job->rank / job->per_node, half = job->nodes / 2, at = chosen(pattern, job, round);
    s->count = 0;
    s->counts = true;
    s->rank = job->rank;
    if (node >= job->nodes || job->rank % job->per_node >= job->used)
        return;
    switch (pattern) {
    case TRAFFIC_PAIR:
        for (int i = 0; node % half == at && node < 2 * half && i < job->streams; i++)
            add(s, job, (node + half) % (2 * half), (node + half) % (2 * half));
        break;
    case TRAFFIC_ONEWAY:
        for (int i = 0; (node == at || node == at + half) && i < job->streams; i++)
            add(s, job, node == at ? node + half : -1, node == at ? -1 : at);
        s->counts = node == at + half;
        break;
    case TRAFFIC_BISECTION:
        if (node < 2 * half)
            add(s, job, (node + half) % (2 * half), (node + half) % (2 * half));
        break;
    case TRAFFIC_MATCHINGS: {
        const int partner = partner_in_matching(job, node, round);
        if (partner >= 0)
            add(s, job, partner, partner);
        break;
    }
    case TRAFFIC_INCAST:
        s->counts = node == at;
        if (node != at)
            add(s, job, at, -1);
        for (int i = 1; node == at && i < job->nodes; i++)
            add(s, job, -1, (at + i) % job->nodes);
        break;
    case TRAFFIC_ALLTOALL:
        for (int i = 1; i < job->nodes; i++)
            add(s, job, (node + i) % job->nodes, (node + job->nodes - i) % job->nodes);
        break;
    default:
        with_neighbours(s, job, node, traffic_dimensions(pattern));
    }
}

/* --- the exchange ---------------------------------------------------------------------------------------------- */

static void exchange(const traffic_steps *s, traffic_ends *e, int first, int last)
{
    int requests = 0;
    for (int step = first; step < last; step++) {
        unsigned char *const slot = e->in + (size_t)(step - first) * e->stride;
        if (s->from[step] < 0)
            continue;
        if (e->verifying)
            memset(slot, 0xFF, e->bytes);
        MPI_Irecv(slot, (int)e->bytes, MPI_BYTE, s->from[step], TAG, MPI_COMM_WORLD, &e->request[requests++]);
    }
    for (int step = first; step < last; step++)
        if (s->to[step] >= 0)
            MPI_Isend(e->out, (int)e->bytes, MPI_BYTE, s->to[step], TAG, MPI_COMM_WORLD, &e->request[requests++]);
    MPI_Waitall(requests, e->request, MPI_STATUSES_IGNORE);
    for (int step = first; e->verifying && step < last; step++)
        if (s->from[step] >= 0) {
            e->wrong += pingpong_wrong_bytes(e->in + (size_t)(step - first) * e->stride, e->bytes, s->from[step], e->written);
            e->arrived++;
        }
}

double traffic_round(const traffic_steps *s, traffic_ends *e, long repeats)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (!s->count)
        return 0;
    const double begin = pl_now();
    for (long repeat = 0; repeat < repeats; repeat++) {
        if (e->verifying)
            pingpong_write(e->out, e->bytes, s->rank, e->written = (uint64_t)repeat);
        for (int first = 0; first < s->count; first += e->slots)
            exchange(s, e, first, first + e->slots < s->count ? first + e->slots : s->count);
    }
    return pl_now() - begin;
}
