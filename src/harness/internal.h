/* What the files of the runtime share among themselves; kernels see plumbline.h only. */
#ifndef PLUMBLINE_INTERNAL_H
#define PLUMBLINE_INTERNAL_H

#include <stdio.h>

#include "plumbline.h"
#include "values.h"

/* clock.c */
double pl_clock_resolution(void);   /* smallest step seen, seconds */

/* base_clock.c; root: "" but for tests */
typedef struct {
    double clock;           /* Hz; 0: nobody says it */
    const char *source;
    double nominal;         /* Hz, where the clock is lower than this, and may have been lowered; else 0 */
    bool turbo;             /* known to be on; where the clock is lower */
} pl_base;
pl_base pl_base_clock(const char *root, int cpu, double nominal);
double pl_nominal_clock(void);      /* Hz, of an Intel processor whose time-stamp counter tells; else 0.  Of a virtual one it may be another's. */

/* options.c */
typedef struct {
    int count;
    const pl_variant **value;
} pl_variants;
typedef struct {
    pl_variants variants;
    pl_sizes sizes, shifts;
    pl_numbers threads, inits, allocs, cpus;    /* cpus: where thread or rank i is expected; count 0: anywhere */
    pl_pages pages;
    bool per_thread;        /* sizes are per thread */
    bool limit;             /* interleave the limit streams */
    const char *choice;     /* file of those that an earlier process chose, or that this one chooses; may be NULL */
    bool every_pass;        /* a barrier of all threads after every pass, as in a parallel loop */
    bool table;             /* a table for people, too */
    bool probes;            /* of the machine's state, beside each sample */
    int samples;
    double min_time;        /* seconds of one sample, at least */
    pl_sizes passes;        /* interleaved as well; 0: as many as min_time needs */
    pl_numbers parameters[PL_MAX_PARAMETERS];
    const char *strings[PL_MAX_STRINGS];
} pl_options;
pl_options pl_parse(int argc, char **argv, const pl_kernel *);
void pl_check_threads(const pl_options *, const pl_kernel *);  /* and the CPUs they are asked for on; kernel: NULL if there is none */
pl_numbers pl_parse_cpus(const char *text);     /* of --cpus */
void pl_parse_capacities(const char *text);     /* of --capacity: into pl_capacity */

/* topology.c */
bool pl_read_line(const char *path, char *line, size_t length);  /* first line of a file, without its newline */
const char *pl_shown_virtual(const char *root);   /* as pl_is_virtual(); root: "" but for tests */
typedef struct { int count; int *cpu; } pl_cpus;
typedef struct { int level; size_t size; int line; pl_cpus shared; } pl_cache;
typedef struct { int count; pl_cache *cache; } pl_caches;
pl_cpus pl_parse_cpulist(const char *text, const char **rest);  /* rest: where the list ends; may be NULL */
pl_cpus pl_allowed_cpus(void);          /* the same list at every call: not to be freed */
pl_caches pl_caches_of(int cpu);        /* data and unified caches; read once: not to be freed */
/* What is ours of each cache of a level, bytes: where it is less than the cache's size, it is what working sets and shares of the
 * cache are compared with.  0: not given. */
enum { PL_LEVELS = 4 };
extern size_t pl_capacity[PL_LEVELS];   /* of L1 in [1] */
int pl_numa_node_count(void);
/* How many of the first threads are bound to CPUs of the first one's node, given the CPUs of each thread and node. */
int pl_count_together(const pl_cpus *bound, int threads, const pl_cpus *node, int nodes);
bool pl_on_one_node(int threads);       /* the first so many of the team: whoever of them touches a page, it lies there */
/* Level in which the working set of the first rank lives, 1, 2, 3; 0 is memory: its threads share it, and each of the other ranks
 * of its node has one as large.  The CPUs of the threads of each rank, one rank after the other. */
int pl_level_of(size_t working_set, const int *cpus, int threads, int ranks);

/* cgroup.c; root: "" but for tests */
double pl_cpu_quota(const char *root);      /* CPUs; 0: no limit */
double pl_memory_left(const char *root);    /* bytes of their limits that are not in use; infinite: no limit */
double pl_throttled(const char *root);      /* seconds since the first call that a quota kept the group's threads from running; NaN: unknown */

/* threads.c: the team.  Serial builds have a team of one. */
const char *pl_threading(void);         /* "openmp" or "serial" */
/* Calls `program` with a team of the most threads that any case has; fails if the runtime gives fewer.  What it returns. */
int pl_with_team(int size, int (*program)(void *), void *argument);
/* The same for kernels that open parallel regions themselves: there is none around `program`, and each pl_team() is one. */
int pl_with_regions(int size, int (*program)(void *), void *argument);
void pl_set_region_threads(int threads);        /* of the regions that a kernel opens itself */
bool pl_in_regions(void);                       /* no team lives on: each piece of work is a region */
void pl_team(int threads, void (*work)(int thread, void *), void *argument);    /* within program */
pl_cpus pl_openmp_places(void);         /* CPUs that OpenMP binds threads to; none if it does not */
void pl_where_threads_run(int threads, int *cpus);

/* arrays.c, buffers.c: what a kernel's data have around them, and where most of them lie */
const void *pl_arrays_extent(const pl_arrays *, size_t *bytes);
void pl_set_guards(const pl_case *);
bool pl_guards_intact(const pl_case *);
const void *pl_extent(const pl_case *, size_t *bytes);
extern const char *const pl_allocs[];   /* the words of pl_alloc, by their numbers; ends with NULL */

/* parts.c */
pl_plan pl_plan_of(const pl_case *, int thread);
double pl_balance(const pl_case *);     /* mean work of a thread over the largest */
double pl_narrowed_to(const pl_case *); /* what a narrowed case does, over all of it: parts are of whole rows, one at least */

/* pages.c */
typedef struct { int count; int node[64]; double share[64]; double huge_share; bool huge_known; } pl_page_report;
pl_pages pl_pages_for(pl_pages asked, int threads);     /* forbidden where one would hold data of several NUMA nodes */
void *pl_map(size_t bytes, pl_pages);
void pl_unmap(void *, size_t bytes);
void pl_advise(void *, size_t bytes, pl_pages);
pl_page_report pl_look_at_pages(const void *, size_t bytes);

/* probes.c: the team's own look at its cores, before and after each sample. */
enum { PL_MOST_ROUNDS = 10 };
typedef struct { double clock, additions, sharing, seconds, latency[PL_MOST_ROUNDS]; } pl_findings;
typedef enum { PL_BEFORE, PL_AFTER, PL_MOMENTS } pl_moment;

typedef struct {
    pl_case c;
    bool calibrated;            /* its passes follow from the length of a sample, not from the options */
    bool is_limit, dropped;     /* dropped: a limit stream that is not among the best */
    int group;
    size_t working_set;
    long passes;
    double pass_seconds;    /* of a calibrating trial */
    double *seconds;
    double *communication;  /* of them, in communication; where the kernel tells */
    pl_findings *probes[PL_MOMENTS];    /* of each sample */
    int samples;
    pl_work work;
    bool valid;
    double max_error, tolerance;
    int *cpus;              /* of each thread of rank 0, of rank 1, ... */
    pl_page_report pages;
    double *kept;           /* numbers of each sample, where the kernel keeps any */
    char *further;          /* keys of the record that the kernel adds, as JSON; may be NULL */
} pl_measurement;

/* cases.c: cases that are measured in turn. */
typedef struct {
    int count, room;
    pl_measurement *m;
} pl_group;
/* Calls `use` with the cases of each size and each choice of the options that the data differ with, numbered from 0. */
void pl_each_group(const pl_kernel *, const pl_options *, void (*use)(pl_group *, const pl_options *, void *), void *argument);
void pl_give_data(pl_group *);
void pl_touch(const pl_case *);                             /* all of its data, as at first */
void pl_take_data(pl_group *);
void pl_prepare(const pl_kernel *, const pl_options *);     /* refuses what cannot be measured here; within program */
int pl_most_threads(const pl_options *);

/* probes.c */
void pl_probes_open(const pl_options *, int threads);       /* the largest team */
void pl_probe(pl_measurement *, pl_moment, int sample);
void pl_gather_probes(pl_measurement *);                    /* of all processes; before the record is written */
void pl_write_probes(FILE *, const pl_measurement *);

/* choice.c: which limit streams are measured; the others are dropped. */
void pl_choose_streams(pl_group *, const pl_options *);
bool pl_read_choice(pl_group *, const pl_options *);        /* false: no process has chosen yet */

/* measure.c */
int pl_measure(const pl_kernel *, const pl_options *);

/* marker.c: LIKWID's markers around the timed loops, where the library is there. */
void pl_markers_open(void);
void pl_marker_start(const pl_case *);
void pl_marker_stop(const pl_case *);
void pl_markers_close(void);

/* contention.c: the time that the system took from this process between the two calls. */
typedef struct { double elapsed, throttled, waited, waited_most, stolen; } pl_contention;  /* seconds; all threads together, and of one */
pl_contention pl_contention_so_far(const pl_options *);
bool pl_note_waiting(int threads);      /* in regions, after a sample: what these threads have waited; false where that is not known */
void pl_write_contention(const pl_contention *before, const pl_options *);

/* record.c, machine.c */
void pl_write_text(FILE *, const char *);           /* JSON string with quotes */
double pl_traffic(const pl_measurement *);           /* bytes of one pass, by the model */
double pl_least_traffic(const pl_measurement *);     /* the same without write-allocates that may be left out */
/* What the traffic of a pass consists of, bytes: lines loaded; loaded from many places by turns; written, with their write-allocate;
 * written past the caches; loaded and written. */
enum { PL_LOAD, PL_LOAD_MANY, PL_FILL, PL_FILL_NT, PL_UPDATE, PL_PARTS };
typedef struct { double bytes[PL_PARTS]; } pl_parts;
pl_parts pl_traffic_parts(const pl_measurement *);
void pl_write_record(const pl_measurement *, const pl_options *);
void pl_write_table(const pl_measurement *, bool heading);
void pl_write_machine(void);

#endif
