/* One JSON object per measurement on a line of its own (src/plumbline/schemas/record.json); a table on request. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

#ifndef PL_COMPILER
#error "the build defines PL_COMPILER and PL_FLAGS: see src/CMakeLists.txt"
#endif

void pl_write_text(FILE *f, const char *text)
{
    if (!text) {
        fputs("null", f);
        return;
    }
    fputc('"', f);
    for (const char *p = text; *p; p++) {
        if (*p == '"' || *p == '\\')
            fprintf(f, "\\%c", *p);
        else if ((unsigned char)*p < 0x20)
            fprintf(f, "\\u%04x", (unsigned)*p);
        else
            fputc(*p, f);
    }
    fputc('"', f);
}

static const char *level_name(int level)
{
    static const char *names[] = {"memory", "L1", "L2", "L3"};
    return names[level];
}

/* A store that misses loads its line first (write-allocate: hager2004, section 3.1), unless it is non-temporal or the data are
 * in L1. */
static pl_parts parts_of(const pl_measurement *m, double allocated)
{
    const pl_work *w = &m->work;
    const bool told = w->fetched_bytes + w->written_bytes + w->updated_bytes > 0;
    const double fetched = told ? w->fetched_bytes : w->load_bytes, written = told ? w->written_bytes : w->store_bytes;
    pl_parts parts = {.bytes = {[PL_UPDATE] = 2 * w->updated_bytes}};
    parts.bytes[w->places < PL_MANY ? PL_LOAD : PL_LOAD_MANY] = fetched - w->updated_bytes;
    if (m->c.variant->nontemporal)
        parts.bytes[PL_FILL_NT] = written;
    else
        parts.bytes[PL_FILL] = allocated * written;
    return parts;
}

static double sum_of(pl_parts parts)
{
    double sum = 0;
    for (int part = 0; part < PL_PARTS; part++)
        sum += parts.bytes[part];
    return sum;
}

pl_parts pl_traffic_parts(const pl_measurement *m) { return parts_of(m, m->c.level == 1 ? 1 : 2); }

/* Bytes that cross the boundary of the level the data come from. */
double pl_traffic(const pl_measurement *m) { return sum_of(pl_traffic_parts(m)); }

/* Without the write-allocates that a processor may leave out: Intel's do where memory is saturated (SpecI2M), Arm's in all
 * levels beyond the first where whole lines are written (write streaming). */
double pl_least_traffic(const pl_measurement *m)
{
#if defined(__x86_64__)
    const bool may_leave_out = m->c.level == 0;
#else
    const bool may_leave_out = m->c.level != 1;
#endif
    return may_leave_out ? sum_of(parts_of(m, 1)) : pl_traffic(m);
}

static void write_parameters(FILE *f, const pl_case *c)
{
    for (int i = 0; c->kernel->parameters && c->kernel->parameters[i].name; i++) {
        const pl_parameter *t = &c->kernel->parameters[i];
        fprintf(f, ", \"%s\": ", t->name);
        if (t->words)
            pl_write_text(f, t->words[c->parameters[i]]);
        else
            fprintf(f, "%ld", c->parameters[i]);
    }
    for (int i = 0; c->kernel->strings && c->kernel->strings[i].name; i++) {
        fprintf(f, ", \"%s\": ", c->kernel->strings[i].name);
        pl_write_text(f, c->text[i]);
    }
    pl_fact found[PL_MAX_FACTS + 1] = {{0}};
    if (c->kernel->facts)
        c->kernel->facts(c, found);
    for (const pl_fact *fact = found; fact->name; fact++) {
        fprintf(f, ", \"%s\": ", fact->name);
        if (fact->text)
            pl_write_text(f, fact->text);
        else
            fprintf(f, isfinite(fact->number) ? "%.17g" : "null", fact->number);
    }
}

static void write_seconds(FILE *f, const double *seconds, int samples)
{
    for (int i = 0; i < samples; i++)
        fprintf(f, "%s%.9g", i ? ", " : "", seconds[i]);
}

static void write_parts(FILE *f, pl_parts parts, double passes)
{
    static const char *const names[PL_PARTS] = {"load", "load_many", "fill", "fill_nt", "update"};
    const char *separator = "\"parts\": {";
    for (int part = 0; part < PL_PARTS; part++)
        if (parts.bytes[part] > 0) {
            fprintf(f, "%s\"%s\": %.0f", separator, names[part], passes * parts.bytes[part]);
            separator = ", ";
        }
    if (*separator == ',')
        fputs("}, ", f);
}

static void write_where(FILE *f, const pl_measurement *m)
{
    fputs(", \"cpus\": [", f);
    for (int i = 0; i < m->c.threads * pl_processes.ranks; i++)
        fprintf(f, "%s%d", i ? ", " : "", m->cpus[i]);
    fputs("], \"numa_nodes\": {", f);
    for (int i = 0; i < m->pages.count; i++)
        fprintf(f, "%s\"%d\": %.3f", i ? ", " : "", m->pages.node[i], m->pages.share[i]);
    fprintf(f, "}, \"page_size\": %ld, \"huge_page_share\": ", sysconf(_SC_PAGESIZE));
    if (m->pages.huge_known)
        fprintf(f, "%.3f", m->pages.huge_share);
    else
        fputs("null", f);
}

void pl_write_record(const pl_measurement *m, const pl_options *o)
{
    const pl_case *c = &m->c;
    const pl_variant *v = c->variant;
    const double passes = (double)m->passes;
    FILE *f = stdout;
    fputs("{\"record\": \"measurement\", \"schema\": 1, \"kernel\": ", f);
    pl_write_text(f, c->kernel->name);
    fputs(", \"variant\": ", f);
    pl_write_text(f, v->name);
    fputs(", \"isa\": ", f);
    pl_write_text(f, v->isa);
    fprintf(f, ", \"role\": \"%s\", \"group\": %d, \"size\": %zu, \"threads\": %d, \"ranks\": %d",
            m->is_limit ? "limit" : c->narrowed > 1 ? "core" : "kernel", m->group, c->n, c->threads, pl_processes.ranks);
    fprintf(f, ", \"options\": {\"threading\": \"%s\", \"init\": \"%s\", \"alloc\": \"%s\", \"shift\": %zu, \"pages\": \"%s\", \"sync\": \"%s\"",
            pl_threading(), c->init == PL_NOINIT ? "noinit" : "parinit", pl_allocs[c->alloc], c->shift,
            c->pages == PL_HUGE ? "huge" : "base", o->every_pass ? "pass" : "block");
    if (pl_processes.library) {
        fputs(", \"mpi\": ", f);
        pl_write_text(f, pl_processes.library);
    }
    write_parameters(f, c);
    fputs("}, \"compiler\": ", f);
    pl_write_text(f, v->compiler ? v->compiler : PL_COMPILER);
    fputs(", \"flags\": ", f);
    pl_write_text(f, v->flags ? v->flags : PL_FLAGS);
    fprintf(f, ", \"level\": \"%s\", \"working_set\": %zu, \"passes\": %ld", level_name(c->level), m->working_set, m->passes);
    if (c->kernel->private_lines && !o->every_pass)     /* a barrier hands a line from thread to thread */
        fputs(", \"private_lines\": true", f);
    fputs(", \"seconds\": [", f);
    write_seconds(f, m->seconds, m->samples);
    if (c->kernel->communication) {
        fputs("], \"communication\": [", f);
        write_seconds(f, m->communication, m->samples);
    }
    fprintf(f, "], \"bytes\": %.0f, \"flops\": %.0f, \"traffic\": %.0f, ",
            passes * (m->work.load_bytes + m->work.store_bytes), passes * m->work.flops, passes * pl_traffic(m));
    if (pl_least_traffic(m) < pl_traffic(m))
        fprintf(f, "\"traffic_least\": %.0f, ", passes * pl_least_traffic(m));
    write_parts(f, pl_traffic_parts(m), passes);
    fputs("\"traffic_source\": ", f);
    pl_write_text(f, m->work.source);
    if (isfinite(m->max_error))
        fprintf(f, ", \"valid\": %s, \"max_error\": %g", m->valid ? "true" : "false", m->max_error);
    else
        fputs(", \"valid\": false, \"max_error\": null", f);
    fprintf(f, ", \"tolerance\": %g", m->tolerance);
    if (pl_processes.ranks == 1)
        fprintf(f, ", \"balance\": %.4f", pl_balance(c));
    write_where(f, m);
    pl_write_probes(f, m);
    if (m->further)
        fprintf(f, ", %s", m->further);
    fprintf(f, ", \"clock_resolution\": %.3g}\n", pl_clock_resolution());
}

void pl_write_table(const pl_measurement *m, bool heading)
{
    double sorted[m->samples];
    memcpy(sorted, m->seconds, sizeof sorted);
    qsort(sorted, (size_t)m->samples, sizeof *sorted, pl_ascending);
    const double bytes = (double)m->passes * (m->work.load_bytes + m->work.store_bytes) / 1e6;
    const double median = sorted[m->samples / 2];
    if (heading)
        printf("%-9s %-14s %8s %12s %7s %11s %11s %11s %6s\n", "kernel", "variant", "isa", "size", "threads",
               "median MB/s", "best MB/s", "traffic", "valid");
    printf("%-9s %-14s %8s %12zu %7d %11.0f %11.0f %11.0f %6s\n", m->c.kernel->name, m->c.variant->name,
           m->c.variant->isa ? m->c.variant->isa : "-", m->c.n, m->c.threads, bytes / median, bytes / sorted[0],
           (double)m->passes * pl_traffic(m) / 1e6 / median, m->valid ? "yes" : "NO");
}
