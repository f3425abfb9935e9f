/* Rounds of phases, and their records (src/plumbline/schemas/burn.json). */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "burn.h"

static const struct { burn_phase *work; const char *unit; } phases[BURN_PHASES] = {
    [BURN_DGEMM] = {burn_dgemm, "Mflop/s"}, [BURN_FMA] = {burn_fma, "Mflop/s"}, [BURN_MEMORY] = {burn_memory, "MB/s"},
    [BURN_CACHE] = {burn_cache, "MB/s"}, [BURN_MESSAGE] = {burn_message, "MB/s"}};

/* How far the burn is; times in seconds. */
typedef struct {
    double begin, done;     /* done: in phases, of the parts before as well */
    long round, errors, phases;
    long errors_of[BURN_PHASES];
} progress;

/* --- the threads -------------------------------------------------------------------------------------------------- */

/* To the CPU that it is to keep hot, whatever binds it or does not. */
static void bind_to(int cpu)
{
    cpu_set_t *const set = CPU_ALLOC(cpu + 1);
    const size_t bytes = CPU_ALLOC_SIZE(cpu + 1);
    if (!set)
        pl_fail("burn: no memory to bind a thread");
    CPU_ZERO_S(bytes, set);
    CPU_SET_S(cpu, bytes, set);
    if (sched_setaffinity(0, bytes, set) != 0)
        pl_fail("--cpus %d: a thread cannot be bound to this CPU: %s", cpu, strerror(errno));
    CPU_FREE(set);
}

static void create(int thread, void *argument)
{
    burn_state *state = argument;
    const burn_options *o = state->options;
    const int cpu = o->harness.cpus.count ? o->harness.cpus.value[thread] : pl_allowed_cpus().cpu[thread];
    bind_to(cpu);
    burn_thread *const t = pl_map(sizeof *t, PL_BASE);
    if (!t)
        pl_fail("no memory for thread %d: close other programs", thread);
    *t = (burn_thread){.thread = thread, .cpu = cpu};
    state->thread[thread] = t;
    burn_dgemm_create(t);
    burn_fma_create(t);
    if (o->phase[BURN_MEMORY])
        burn_pattern_create(&t->memory, "memory", o->memory, 2 * (uint64_t)thread);
    burn_pattern_create(&t->cache, "cache", o->cache, 2 * (uint64_t)thread + 1);
    burn_message_create(t);
}

static void work(int thread, void *argument)
{
    burn_state *state = argument;
    burn_thread *const t = state->thread[thread];
    t->work = 0;
    t->errors.count = 0;
    const double begin = pl_now();
    phases[state->phase].work(state, t);
    t->seconds = pl_now() - begin;
    t->clock = pl_core_clock(5e-4);     /* of a core that is as warm as the phase has made it */
    t->cpu = sched_getcpu();
}

static void multiply_plainly(int thread, void *argument)
{
    burn_state *state = argument;
    double *const found = burn_dgemm_reference();
    if (thread == 0)
        state->reference = found;
    pl_barrier();
    if (thread == state->options->threads - 1 && memcmp(state->reference, found, BURN_ORDER * BURN_ORDER * sizeof *found) != 0) {
        pl_tell_wrong("two cores do not get the same product");
        pl_fail("burn: the first thread, on CPU %d, and the last, on CPU %d, do not get the same product: one of these cores computes wrongly; "
                "leave one of them out by --cpus", state->thread[0]->cpu, state->thread[thread]->cpu);
    }
    pl_barrier();
    if (thread > 0)
        free(found);
}

/* --- records ------------------------------------------------------------------------------------------------------ */

typedef struct { char *text; size_t length; FILE *file; } line;

static void begin_line(line *l, const char *kind)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *l = (line){0};
    l->file = open_memstream(&l->text, &l->length);
    if (!l->file)
        pl_fail("burn: no memory for a record");
    fprintf(l->file, "{\"record\": \"%s\", \"schema\": 1, \"time\": %.3f", kind, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
}

static void end_line(line *l)
{
    fputs("}\n", l->file);
    fclose(l->file);
    burn_series_put(l->text, l->length);
}

static void write_start(const burn_state *state, const progress *p)
{
    const burn_options *o = state->options;
    char host[256] = "";
    line l;
    gethostname(host, sizeof host - 1);
    begin_line(&l, "burn_start");
    fputs(", \"hostname\": ", l.file);
    pl_write_text(l.file, host);
    fprintf(l.file, ", \"minutes\": %g, \"slice\": %g, \"threads\": %d, \"cpus\": [", o->minutes, o->slice, o->threads);
    for (int i = 0; i < o->threads; i++)
        fprintf(l.file, "%s%d", i ? ", " : "", state->thread[i]->cpu);
    fputs("], \"phases\": [", l.file);
    for (int i = 0, before = 0; i < BURN_PHASES; i++)
        if (o->phase[i])
            fprintf(l.file, "%s\"%s\"", before++ ? ", " : "", burn_phases[i]);
    fprintf(l.file, "], \"memory\": %zu, \"cache\": %zu, \"dgemm\": ", o->phase[BURN_MEMORY] ? o->memory : 0, o->cache);
    pl_write_text(l.file, burn_dgemm_isa());
    fputs(", \"fma\": ", l.file);
    pl_write_text(l.file, burn_fma_isa());
    fprintf(l.file, ", \"done\": %.3f, \"round\": %ld, \"flip\": %s, \"not_readable\": {", p->done, p->round, o->flip_round ? "true" : "false");
    burn_sensors_missing(l.file);
    fputs("}", l.file);
    end_line(&l);
}

/* least, median, most, and whose the least is */
static void write_summary(FILE *f, const double *value, const burn_state *state)
{
    const int n = state->options->threads;
    double *const sorted = pl_allocate((size_t)n * sizeof *sorted, "a record");
    int slowest = 0;
    memcpy(sorted, value, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, pl_ascending);
    for (int i = 1; i < n; i++)
        slowest = value[i] < value[slowest] ? i : slowest;
    fprintf(f, "\"min\": %.5g, \"median\": %.5g, \"max\": %.5g, \"slowest_cpu\": %d", sorted[0], (sorted[(n - 1) / 2] + sorted[n / 2]) / 2,
            sorted[n - 1], state->thread[slowest]->cpu);
    free(sorted);
}

static void write_error(const burn_state *state, const progress *p, const burn_thread *t, const burn_error *e)
{
    line l;
    begin_line(&l, "burn_error");
    fprintf(l.file, ", \"round\": %ld, \"phase\": \"%s\", \"thread\": %d, \"cpu\": %d, \"buffer\": \"%s\", \"offset\": %zu, \"address\": \"%p\"",
            p->round, burn_phases[state->phase], t->thread, t->cpu, e->buffer, e->offset, e->address);
    if (e->lost)
        fputs(", \"expected\": null, \"seen\": null", l.file);
    else
        fprintf(l.file, ", \"expected\": \"0x%016lx\", \"seen\": \"0x%016lx\"", (unsigned long)e->expected, (unsigned long)e->seen);
    fprintf(l.file, ", \"bits\": \"0x%016lx\", \"again\": \"0x%016lx\", \"from_thread\": ", (unsigned long)e->bits, (unsigned long)e->again);
    fprintf(l.file, e->from < 0 ? "null" : "%d", e->from);
    end_line(&l);
}

static void write_phase(const burn_state *state, progress *p, double seconds)
{
    const int n = state->options->threads;
    double *const rates = pl_allocate(2 * (size_t)n * sizeof *rates, "a record"), *const clocks = rates + n, total = 0;
    bool clock_known = true;
    long errors = 0;
    line l;
    for (int i = 0; i < n; i++) {
        const burn_thread *const t = state->thread[i];
        total += rates[i] = t->work / t->seconds / 1e6;
        clocks[i] = t->clock / 1e6;
        clock_known &= isfinite(clocks[i]) != 0;
        errors += t->errors.count;
        for (int k = 0; k < BURN_TOLD && k < t->errors.count; k++)
            write_error(state, p, t, &t->errors.told[k]);
    }
    p->errors += errors;
    p->errors_of[state->phase] += errors;
    p->phases++;
    begin_line(&l, "burn_phase");
    fprintf(l.file, ", \"round\": %ld, \"phase\": \"%s\", \"elapsed\": %.3f, \"done\": %.3f, \"seconds\": %.4f, \"unit\": \"%s\", "
            "\"rate\": {\"total\": %.6g, ", p->round, burn_phases[state->phase], pl_now() - p->begin, p->done, seconds,
            phases[state->phase].unit, total);
    write_summary(l.file, rates, state);
    fputs("}, \"rates\": [", l.file);
    for (int i = 0; i < n; i++)
        fprintf(l.file, "%s%.5g", i ? ", " : "", rates[i]);
    fputs("], \"clock\": ", l.file);
    if (clock_known) {
        fputs("{", l.file);
        write_summary(l.file, clocks, state);
        fputs("}", l.file);
    } else
        fputs("null", l.file);
    burn_sensors_write(l.file, seconds);
    burn_counts_write(l.file);
    fprintf(l.file, ", \"errors\": %ld, \"total_errors\": %ld", errors, p->errors);
    end_line(&l);
    free(rates);
}

static void write_end(const burn_state *state, const progress *p)
{
    const burn_series so_far = burn_series_so_far();
    const int signal = atomic_load(&burn_signal);
    line l;
    begin_line(&l, "burn_end");
    fputs(", \"ended\": ", l.file);
    fprintf(l.file, signal ? "\"signal %d\"" : "\"complete\"", signal);
    fprintf(l.file, ", \"round\": %ld, \"done\": %.3f, \"phases\": %ld, \"errors\": %ld, \"errors_of\": {", p->round, p->done, p->phases, p->errors);
    for (int i = 0, before = 0; i < BURN_PHASES; i++)
        if (state->options->phase[i])
            fprintf(l.file, "%s\"%s\": %ld", before++ ? ", " : "", burn_phases[i], p->errors_of[i]);
    fprintf(l.file, "}, \"lost_records\": %ld, \"most_waiting\": %ld, \"write_error\": ", so_far.lost, so_far.most_waiting);
    pl_write_text(l.file, so_far.error ? strerror(so_far.error) : NULL);
    end_line(&l);
}

/* --- rounds ------------------------------------------------------------------------------------------------------- */

static void run_phase(burn_state *state, progress *p, int phase)
{
    const burn_options *o = state->options;
    state->phase = phase;
    atomic_store(&state->last_step, -1);
    state->thread[o->flip_thread]->flip = p->round == o->flip_round && phase == o->flip_phase;
    burn_sensors_begin();
    const double begin = pl_now();
    state->until = begin + o->slice;
    pl_team(o->threads, work, state);
    const double seconds = pl_now() - begin;
    p->done += seconds;
    write_phase(state, p, seconds);
}

static const char *why_lost(burn_series series)
{
    if (series.hangs)
        return "it does not answer, or is too slow";
    return series.error ? strerror(series.error) : "they came faster than they were taken (--keep)";
}

static int report_end(const burn_state *state, const progress *p, burn_series series, const pl_contention *before)
{
    const burn_options *o = state->options;
    const int signal = atomic_load(&burn_signal), code = p->errors ? 1 : signal ? 128 + signal : series.waiting ? 3 : 0;
    burn_announce(code);
    if (series.lost)
        fprintf(stderr, "plumbline: burn: %ld records could not be written to %s: %s\n", series.lost, o->series ? o->series : "standard output",
                why_lost(series));
    else        /* standard output may lie on the same file system */
        pl_write_contention(before, &o->harness);
    if (signal)
        fprintf(stderr, "plumbline: burn: ended by signal %d after %.1f of %g minutes, with %ld errors%s\n", signal, p->done / 60, o->minutes,
                p->errors, o->series ? "; --resume goes on with it" : "");
    if (p->errors)
        fprintf(stderr, "plumbline: burn: %ld of the results are wrong: a core, a cache or a memory module of this node is not reliable\n",
                p->errors);
    return code;
}

int burn_run(void *argument)
{
    static const double patience = 5;
    burn_state *state = argument;
    const burn_options *o = state->options;
    progress p = {.round = 1};
    if (o->series) {
        const burn_past past = burn_read_past(o->resume ? o->series : NULL, o->threads);
        p.done = past.done;
        p.errors = past.errors;
        p.round += past.round;
    }
    burn_series_open(o->series, o->resume, o->keep);
    state->thread = pl_allocate((size_t)o->threads * sizeof *state->thread, "the threads");
    pl_team(o->threads, create, state);
    pl_team(o->threads, multiply_plainly, state);
    burn_sensors_open(o->sensors);
    burn_counts_open(o->sensors);
    pl_write_machine();
    const pl_contention before = pl_contention_so_far(&o->harness);
    p.begin = pl_now();
    write_start(state, &p);
    bool goes_on = true;
    while (goes_on) {
        for (int phase = 0; phase < BURN_PHASES; phase++)
            if (o->phase[phase]) {
                goes_on = goes_on && !atomic_load(&burn_signal) && p.done < 60 * o->minutes;
                if (goes_on)
                    run_phase(state, &p, phase);
            }
        p.round += goes_on;
    }
    write_end(state, &p);
    return report_end(state, &p, burn_series_close(patience), &before);
}
