/* The limit streams that are worth their time: the fastest, and those that move what the kernels' traffic consists of.  The processes
 * of a case must rest on the same ones, so that the first leaves its choice in a file for the others. */
#include <errno.h>
#include <string.h>

#include "internal.h"

/* A limit that counts a write-allocate which the processor leaves out would be out of reach: loads, updates and non-temporal stores
 * move what the model says.  As limits.traffic_is_certain() reads it from the record. */
static bool traffic_is_certain(const pl_measurement *m) { return pl_least_traffic(m) == pl_traffic(m); }

/* Whether a stream does nothing but a part of the traffic; of PL_PARTS, whether a limit may rest on it. */
static bool is_for(const pl_measurement *m, int part)
{
    return part == PL_PARTS ? traffic_is_certain(m) : pl_traffic_parts(m).bytes[part] == pl_traffic(m);
}

static double rate(const pl_measurement *m) { return pl_traffic(m) / m->pass_seconds; }

static void keep_fastest(pl_group *g, int threads, int part)
{
    pl_measurement *best = NULL;
    for (int i = 0; i < g->count; i++) {
        pl_measurement *m = &g->m[i];
        if (m->is_limit && m->c.threads == threads && is_for(m, part) && (!best || rate(m) > rate(best)))
            best = m;
    }
    if (best)
        best->dropped = false;
}

static void write_choice(const pl_group *g, const char *path)
{
    FILE *const f = fopen(path, "a");
    if (!f)
        pl_fail("--limit=%s: %s: name a file that can be written, or give --limit alone", path, strerror(errno));
    for (int i = 0; i < g->count; i++)
        if (g->m[i].is_limit && !g->m[i].dropped)
            fprintf(f, "%d %d %s\n", g->m[i].group, g->m[i].c.threads, g->m[i].c.variant->name);
    if (fclose(f))
        pl_fail("--limit=%s: %s: make room, or give --limit alone", path, strerror(errno));
}

void pl_choose_streams(pl_group *g, const pl_options *o)
{
    bool needed[PL_PARTS + 1] = {[PL_PARTS] = true};
    for (int i = 0; i < g->count; i++) {
        g->m[i].dropped = g->m[i].is_limit;
        for (int part = 0; part < PL_PARTS; part++)
            needed[part] |= !g->m[i].is_limit && pl_traffic_parts(&g->m[i]).bytes[part] > 0;
    }
    for (int t = 0; t < o->threads.count; t++)
        for (int part = 0; part <= PL_PARTS; part++)
            if (needed[part])
                keep_fastest(g, o->threads.value[t], part);
    if (o->choice && pl_processes.rank == 0)
        write_choice(g, o->choice);
}

bool pl_read_choice(pl_group *g, const pl_options *o)
{
    bool kept[g->count], any = false;
    memset(kept, 0, sizeof kept);
    /* One rank alone: a folder that nodes share may show it to some of them and not yet to others. */
    FILE *const f = o->choice && pl_processes.rank == 0 ? fopen(o->choice, "r") : NULL;
    char name[64];
    for (int group, threads; f && fscanf(f, "%d %d %63s", &group, &threads, name) == 3;)
        for (int i = 0; i < g->count; i++) {
            const pl_measurement *m = &g->m[i];
            kept[i] |= m->is_limit && m->group == group && m->c.threads == threads && !strcmp(m->c.variant->name, name);
            any |= kept[i];
        }
    if (f)
        fclose(f);
    if (pl_processes.reduce_max(any) == 0)
        return false;
    for (int i = 0; i < g->count; i++)
        if (g->m[i].is_limit)
            g->m[i].dropped = pl_processes.reduce_max(kept[i]) == 0;
    return true;
}
