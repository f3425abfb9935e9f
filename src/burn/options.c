/* The command line: what is wrong is one line that says how to fix it. */
#include <getopt.h>
#include <math.h>
#include <stdlib.h>

#include "burn.h"

const char *const burn_phases[] = {"dgemm", "fma", "memory", "cache", "message", NULL};

static const double most_minutes = 1e6;

static _Noreturn void help(void)
{
    puts("burn: all cores at work for hours, every result compared bit for bit with what it must be\n\n"
         "  --minutes M            how long, fractions allowed (default 10)\n"
         "  --slice SECONDS        length of a phase in a round (default 10)\n"
         "  --phases A,B,..        of dgemm, fma, memory, cache, message (default all that can run)\n"
         "  --threads T            (default one on each CPU that is allowed)\n"
         "  --cpus C,..            thread i is bound to the i-th of these CPUs (default those that are allowed)\n"
         "  --capacity L3=BYTES,.. what is ours of each cache of a level, where that is less than its size\n"
         "  --memory BYTES         of all threads together, for the phase memory (default half of what is available)\n"
         "  --series FILE          records go there, a line each (default standard output)\n"
         "  --resume               go on with the burn that FILE is of, until M minutes are done in all\n"
         "  --flip T:PHASE:ROUND   self-test: flip one bit of thread T's data, which must be found\n"
         "  --sensors FOLDER       self-test: read sys and proc below this folder\n"
         "  --list                 the phases");
    exit(0);
}

static double minutes(const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value > 0 && value <= most_minutes))
        pl_fail("--minutes %s: give minutes, more than 0 and at most %g", text, most_minutes);
    return value;
}

static void phases(const char *text, bool *chosen)
{
    pl_numbers list = {0};
    pl_parse_words("phases", text, burn_phases, &list);
    for (int i = 0; i < list.count; i++)
        chosen[list.value[i]] = true;
    free(list.value);
}

/* THREAD:PHASE:ROUND */
static void flip(const char *text, burn_options *o)
{
    char *const copy = pl_duplicate(text), *rest = copy;
    const char *thread = strsep(&rest, ":"), *phase = strsep(&rest, ":"), *round = rest;
    if (!phase || !round)
        pl_fail("--flip %s: give THREAD:PHASE:ROUND, for example 0:dgemm:1", text);
    o->flip_thread = (int)pl_parse_number("flip", thread, 0, 1 << 20);
    o->flip_phase = pl_parse_position("flip", phase, burn_phases);
    o->flip_round = pl_parse_number("flip", round, 1, 1 << 30);
    free(copy);
}

static void check_threads(burn_options *o)
{
    const int cpus = o->harness.cpus.count;
    if (!o->threads)
        o->threads = !strcmp(pl_threading(), "serial") ? 1 : cpus ? cpus : pl_allowed_cpus().count;
    pl_add_number(&o->harness.threads, o->threads);
    pl_check_threads(&o->harness, NULL);
}

static void check_phases(burn_options *o)
{
    bool any = false;
    for (int i = 0; i < BURN_PHASES; i++)
        any |= o->phase[i];
    if (any && o->phase[BURN_MESSAGE] && o->threads < 2)
        pl_fail("--phases message: messages go from thread to thread: give at least 2 threads, of the OpenMP build");
    for (int i = 0; !any && i < BURN_PHASES; i++)
        o->phase[i] = i != BURN_MESSAGE || o->threads > 1;
    if (o->flip_round && (!o->phase[o->flip_phase] || o->flip_thread >= o->threads))
        pl_fail("--flip %d:%s:%ld: there is no such thread or phase: threads are 0 to %d", o->flip_thread, burn_phases[o->flip_phase],
                o->flip_round, o->threads - 1);
}

/* Half of the memory, and half of a core's second-level cache. */
static void choose_sizes(burn_options *o)
{
    enum { LEAST = 1 << 16, USUAL = 1 << 18 };
    const size_t available = pl_memory_available(), all = o->memory ? o->memory : available / 2;
    const pl_case team = {.threads = o->threads};
    const size_t share = pl_cache_share(&team, 2);
    if (o->phase[BURN_MEMORY] && all > available)
        pl_fail("--memory %zu: only %zu bytes are available here: give less", all, available);
    o->memory = all / (size_t)o->threads;
    if (o->phase[BURN_MEMORY] && o->memory < LEAST)
        pl_fail("--memory %zu: %d threads have less than %d bytes each: give more", all, o->threads, LEAST);
    o->cache = share ? share / 2 : USUAL;
}

burn_options burn_parse(int argc, char **argv)
{
    enum { MINUTES = 1, SLICE, PHASES, THREADS, CPUS, CAPACITY, MEMORY, SERIES, KEEP, RESUME, FLIP, SENSORS, LIST, HELP };
    static const struct option known[] = {
        {"minutes", 1, 0, MINUTES}, {"slice", 1, 0, SLICE}, {"phases", 1, 0, PHASES}, {"threads", 1, 0, THREADS}, {"cpus", 1, 0, CPUS},
        {"capacity", 1, 0, CAPACITY}, {"memory", 1, 0, MEMORY}, {"series", 1, 0, SERIES}, {"keep", 1, 0, KEEP}, {"resume", 0, 0, RESUME},
        {"flip", 1, 0, FLIP}, {"sensors", 1, 0, SENSORS}, {"list", 0, 0, LIST}, {"help", 0, 0, HELP}, {0}};
    burn_options o = {.minutes = 10, .slice = 10, .keep = 16 << 20, .sensors = ""};
    opterr = 0;
    for (int c, at = 1; (c = getopt_long(argc, argv, "+", known, NULL)) != -1; at = optind)
        switch (c) {
        case MINUTES: o.minutes = minutes(optarg); break;
        case SLICE: o.slice = pl_parse_seconds("slice", optarg); break;
        case PHASES: phases(optarg, o.phase); break;
        case THREADS: o.threads = (int)pl_parse_number("threads", optarg, 1, 1 << 20); break;
        case CPUS: o.harness.cpus = pl_parse_cpus(optarg); break;
        case CAPACITY: pl_parse_capacities(optarg); break;
        case MEMORY: o.memory = pl_parse_size("memory", optarg, 1, PL_MAX_SIZE); break;
        case SERIES: o.series = optarg; break;
        case KEEP: o.keep = pl_parse_size("keep", optarg, 1, 1 << 30); break;
        case RESUME: o.resume = true; break;
        case FLIP: flip(optarg, &o); break;
        case SENSORS: o.sensors = optarg; break;
        case LIST:
            for (int i = 0; i < BURN_PHASES; i++)
                puts(burn_phases[i]);
            exit(0);
        case HELP: help();
        default: pl_fail("%s: unknown option, or its value is missing or one too many: --help lists them all", argv[at]);
        }
    if (optind < argc)
        pl_fail("%s: not an option: --help lists them all", argv[optind]);
    if (o.resume && !o.series)
        pl_fail("--resume: of which burn? give its --series FILE");
    check_threads(&o);
    check_phases(&o);
    choose_sizes(&o);
    return o;
}
