/* What the machine hides, measured by the team itself before and after each sample: which cores share a cache right now
 * (core-to-core latency), whether two of its own threads are on one core, the clock of each core, and whether somebody else works
 * on it. */
#include <math.h>
#include <stdlib.h>

#include "handover.h"
#include "internal.h"

enum { BATCHES = 4, FEWEST = 4, GIVE_UP = 4, TRY_AGAIN = 8 };

/* Of the length of a sample: the probe before it, and the one after.  What a probe spends on each of its questions. */
static const double share = 0.02, on_latency = 0.5, on_sharing = 0.1, on_clock = 0.15, on_additions = 0.15;
static const double slow = 250e-9;      /* seconds of a handover that their number is planned with */
static const double shortest = 20e-6;   /* seconds of a probe: less cannot be read off the clock */
static const double no_pair = -1;

typedef struct { alignas(128) pl_findings found; } findings;     /* of one thread, on lines of its own */

static struct {
    bool wanted;
    int most;               /* members of the largest party: a team, or the processes that share memory */
    int rounds;             /* of the largest party on any node */
    double block;           /* seconds of a sample, at least, where its length is not chosen by the passes */
    double seconds;         /* of the probe at hand */
    pl_relay *relay;        /* a line for each pair of each round */
    findings *of;           /* of each thread */
    uint32_t epoch;
    int silent;             /* probes in a row in which a partner was silent: after some, few are tried */
} p;

static bool among_processes(void) { return pl_processes.ranks > 1; }

static int members(const pl_case *c)
{
    if (among_processes())
        return pl_processes.share ? pl_processes.on_node : 1;
    return c->threads;
}

static pl_relay *relays(size_t lines)
{
    const size_t bytes = lines * sizeof(pl_relay);
    if (among_processes())
        return pl_processes.share && lines ? pl_processes.share(bytes) : NULL;
    pl_relay *all = lines ? aligned_alloc(alignof(pl_relay), bytes) : NULL;
    for (size_t i = 0; i < lines; i++)
        atomic_init(&all[i].turn, 0);
    return all;
}

void pl_probes_open(const pl_options *o, int threads)
{
    if (!(p.wanted = o->probes))
        return;
    p.most = members(&(pl_case){.threads = threads});
    p.rounds = (int)pl_processes.reduce_max(pl_relay_rounds(p.most));
    p.block = o->min_time;
    p.relay = relays((size_t)p.most * (size_t)p.rounds);
    p.of = aligned_alloc(alignof(findings), (size_t)threads * sizeof *p.of);
    if (!p.of || (!p.relay && p.rounds && !among_processes()))
        pl_fail("no memory for the probes of %d threads", threads);
}

/* --- one probe ---------------------------------------------------------------------------------------------- */

static pl_relay_length length_of(int rounds)
{
    const int handovers = (int)(on_latency * p.seconds / rounds / (BATCHES * 2 * slow));
    return (pl_relay_length){BATCHES, handovers > FEWEST ? handovers : FEWEST, fmax(2e-4, 2 * p.seconds)};
}

static void look(int thread, void *argument)
{
    const pl_case *c = argument;
    const int all = members(c), own = among_processes() ? pl_processes.at_node : thread;
    pl_findings *const f = &p.of[thread].found;
    f->sharing = 0;
    for (int round = 0; round < p.rounds; round++) {
        const int partner = pl_relay_partner(own, round);
        f->latency[round] = no_pair;
        if (partner >= all || !p.relay || (among_processes() && thread > 0))
            continue;
        const int first = own < partner ? own : partner;
        pl_relay *const line = &p.relay[round * p.most + first];
        const pl_relay_length length = length_of(p.rounds);
        double seconds = NAN;
        if (p.silent < GIVE_UP || p.epoch % TRY_AGAIN == 0)
            seconds = pl_hand_over(line, own != first, p.epoch, length);
        if (own == first || isnan(seconds))
            f->latency[round] = seconds;
        if (!isnan(seconds)) {
            const double each = on_sharing * p.seconds / p.rounds, alone = own == first ? pl_core_divisions(each) : 0;
            if (own == first)
                pl_relay_call(line, p.epoch);
            else
                pl_relay_rest(line, p.epoch, length.patience);
            f->sharing = fmax(f->sharing, alone / pl_core_divisions(each));
        }
    }
    f->clock = pl_core_clock(on_clock * p.seconds);
    f->additions = pl_core_additions(on_additions * p.seconds, f->clock);
}

/* The mean over the pairs of a round; not a number if one of them is not known. */
static double mean_latency(int round, int threads)
{
    double sum = 0, pairs = 0;
    for (int thread = 0; thread < threads; thread++)
        if (p.of[thread].found.latency[round] != no_pair) {
            sum += p.of[thread].found.latency[round];
            pairs++;
        }
    return pairs > 0 ? sum / pairs : no_pair;
}

void pl_probe(pl_measurement *m, pl_moment moment, int sample)
{
    if (!p.wanted)
        return;
    const double begin = pl_now();
    pl_findings *const f = &m->probes[moment][sample];
    p.epoch++;
    p.seconds = fmax(shortest, share * (sample > 0 || moment == PL_AFTER ? fmin(p.block, m->seconds[0]) : p.block));
    pl_team(m->c.threads, look, &m->c);
    f->clock = f->additions = INFINITY;
    f->sharing = 0;
    for (int thread = 0; thread < m->c.threads; thread++) {
        f->clock = fmin(f->clock, p.of[thread].found.clock);
        f->additions = fmin(f->additions, p.of[thread].found.additions);
        f->sharing = fmax(f->sharing, p.of[thread].found.sharing);
    }
    bool silent = false;
    for (int round = 0; round < p.rounds; round++) {
        f->latency[round] = mean_latency(round, m->c.threads);
        silent |= isnan(f->latency[round]);
    }
    p.silent = silent ? p.silent + 1 : 0;
    f->seconds = pl_now() - begin;
}

/* --- the record --------------------------------------------------------------------------------------------- */

static int rounds_of(const pl_case *c) { return among_processes() ? p.rounds : pl_relay_rounds(c->threads); }

/* Of all processes: the slowest core, the core that two of them share, and the mean over the pairs. */
static void reduce(pl_findings *f)
{
    f->clock = -pl_processes.reduce_max(-f->clock);
    f->additions = -pl_processes.reduce_max(-f->additions);
    f->sharing = pl_processes.reduce_max(f->sharing);
    for (int round = 0; round < p.rounds; round++) {
        const bool pair = f->latency[round] != no_pair;
        const double pairs = pl_processes.reduce_sum(pair), sum = pl_processes.reduce_sum(pair ? f->latency[round] : 0);
        f->latency[round] = pairs > 0 ? sum / pairs : NAN;
    }
}

void pl_gather_probes(pl_measurement *m)
{
    for (int moment = 0; p.wanted && among_processes() && moment < PL_MOMENTS; moment++)
        for (int sample = 0; sample < m->samples; sample++)
            reduce(&m->probes[moment][sample]);
}

static void write_number(FILE *f, double x)
{
    if (isfinite(x) && x > 0)
        fprintf(f, "%.4g", x);
    else
        fputs("null", f);
}

static double clock_of(const pl_findings *f, int round) { return f->clock; }
static double additions_of(const pl_findings *f, int round) { return f->additions; }
static double sharing_of(const pl_findings *f, int round) { return f->sharing; }
static double latency_of(const pl_findings *f, int round) { return f->latency[round]; }

static void write_probe(FILE *f, const pl_measurement *m, const char *name, double (*value)(const pl_findings *, int), int rounds)
{
    static const char *const moments[] = {"before", "after"};
    fprintf(f, "\"%s\": {", name);
    for (int moment = 0; moment < PL_MOMENTS; moment++) {
        fprintf(f, "%s\"%s\": [", moment ? ", " : "", moments[moment]);
        for (int sample = 0; sample < m->samples; sample++) {
            fputs(sample ? ", " : "", f);
            fputs(rounds ? "[" : "", f);
            for (int round = 0; round < (rounds ? rounds : 1); round++) {
                fputs(round ? ", " : "", f);
                write_number(f, value(&m->probes[moment][sample], round));
            }
            fputs(rounds ? "]" : "", f);
        }
        fputs("]", f);
    }
    fputs("}, ", f);
}

void pl_write_probes(FILE *f, const pl_measurement *m)
{
    if (!p.wanted)
        return;
    double seconds = 0;
    fputs(", \"probes\": {", f);
    if (rounds_of(&m->c)) {
        write_probe(f, m, "core_to_core", latency_of, rounds_of(&m->c));
        write_probe(f, m, "core_sharing", sharing_of, 0);
    }
    write_probe(f, m, "clock", clock_of, 0);
    write_probe(f, m, "additions_per_cycle", additions_of, 0);
    for (int moment = 0; moment < PL_MOMENTS; moment++)
        for (int sample = 0; sample < m->samples; sample++)
            seconds += m->probes[moment][sample].seconds;
    fprintf(f, "\"seconds\": %.4g}", seconds);
}
