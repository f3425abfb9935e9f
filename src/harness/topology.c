/* CPUs that may be used, and their caches, as the operating system tells them. */
#define _GNU_SOURCE
#include <ctype.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { MAX_LEVELS = 5 };

bool pl_read_line(const char *path, char *line, size_t length)
{
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    const bool read = fgets(line, (int)length, f) != NULL;
    fclose(f);
    if (read)
        line[strcspn(line, "\n")] = 0;
    return read;
}

/* "7" or "0-3"; false, and `at` stays, if there is no such range of CPUs. */
static bool next_range(const char **at, long *first, long *last)
{
    enum { MOST = 1 << 16 };
    const char *text = *at;
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    *first = *last = strtol(text, &end, 10);
    if (*end == '-') {
        text = end + 1;
        if (!isdigit((unsigned char)*text))
            return false;
        *last = strtol(text, &end, 10);
    }
    if (*last < *first || *last >= MOST)
        return false;
    *at = end;
    return true;
}

/* "0-3,8" as the kernel writes it. */
pl_cpus pl_parse_cpulist(const char *text, const char **rest)
{
    pl_cpus list = {0, NULL};
    int room = 0;
    long cpu, last;
    while (next_range(&text, &cpu, &last)) {
        for (; cpu <= last; cpu++) {
            if (list.count == room) {
                room = room ? 2 * room : 16;
                list.cpu = realloc(list.cpu, (size_t)room * sizeof *list.cpu);
                if (!list.cpu)
                    pl_fail("no memory for a list of CPUs");
            }
            list.cpu[list.count++] = (int)cpu;
        }
        if (*text != ',' || !isdigit((unsigned char)text[1]))
            break;
        text++;
    }
    if (rest)
        *rest = text;
    return list;
}

/* The affinity of the process as it was before the first thread was bound: likwid-pin leaves its own list in
 * LIKWID_PIN (and has refused CPUs that are not allowed), OpenMP knows its places. */
pl_cpus pl_allowed_cpus(void)
{
    static pl_cpus list;
    cpu_set_t set;
    if (list.cpu)
        return list;
    list.cpu = pl_allocate(CPU_SETSIZE * sizeof(int), "the list of CPUs");
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    const char *pinned = getenv("LIKWID_PIN");
    if (pinned) {
        const pl_cpus extra = pl_parse_cpulist(pinned, NULL);
        for (int i = 0; i < extra.count; i++)
            if (extra.cpu[i] < CPU_SETSIZE)
                CPU_SET(extra.cpu[i], &set);
        free(extra.cpu);
    }
    const pl_cpus places = pl_openmp_places();
    for (int i = 0; i < places.count; i++)
        if (places.cpu[i] < CPU_SETSIZE)
            CPU_SET(places.cpu[i], &set);
    free(places.cpu);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set))
            list.cpu[list.count++] = cpu;
    return list;
}

static pl_caches read_caches(int cpu)
{
    pl_caches caches = {0, pl_allocate(MAX_LEVELS * sizeof(pl_cache), "the list of caches")};
    for (int index = 0; index < 10 && caches.count < MAX_LEVELS; index++) {
        char path[160], line[4096];
        const int root = snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/", cpu, index);
        pl_cache cache = {0};
#define PL_READ(name) (strcpy(path + root, name), pl_read_line(path, line, sizeof line))
        if (!PL_READ("type"))
            break;
        if (!strcmp(line, "Instruction"))
            continue;
        if (PL_READ("level"))
            cache.level = atoi(line);
        if (PL_READ("size")) {
            char *unit;
            cache.size = strtoul(line, &unit, 10);
            cache.size *= *unit == 'K' ? 1024u : *unit == 'M' ? 1024u * 1024u : 1u;
        }
        if (PL_READ("coherency_line_size"))
            cache.line = atoi(line);
        if (PL_READ("shared_cpu_list"))
            cache.shared = pl_parse_cpulist(line, NULL);
#undef PL_READ
        if (cache.level && cache.size)
            caches.cache[caches.count++] = cache;
    }
    return caches;
}

/* Some twenty small files for each CPU, which has hundreds of cases: read once. */
pl_caches pl_caches_of(int cpu)
{
    static pl_caches known[CPU_SETSIZE];
    if (cpu < 0 || cpu >= CPU_SETSIZE)
        return (pl_caches){0, NULL};
    if (!known[cpu].cache)
        known[cpu] = read_caches(cpu);
    return known[cpu];
}

/* The distinct caches of one level that these CPUs reach: at most as many; how many. */
static int reached(int level, const int *cpus, int count, const pl_cache **found)
{
    int caches = 0;
    cpu_set_t served;
    CPU_ZERO(&served);
    for (int i = 0; i < count; i++) {
        const pl_caches all = pl_caches_of(cpus[i]);
        if (CPU_ISSET(cpus[i], &served))
            continue;
        CPU_SET(cpus[i], &served);
        for (int j = 0; j < all.count; j++) {
            if (all.cache[j].level != level)
                continue;
            found[caches++] = &all.cache[j];
            for (int s = 0; s < all.cache[j].shared.count; s++)
                CPU_SET(all.cache[j].shared.cpu[s], &served);
        }
    }
    return caches;
}

static bool is_same(const pl_cache *a, const pl_cache *b)
{
    return a == b || (a->shared.count && b->shared.count && a->shared.cpu[0] == b->shared.cpu[0]);
}

/* Whether what all ranks want of the caches of a level that the first of them reaches fits into each of these.  A rank spreads
 * its working set evenly over those that it reaches. */
static bool fits(int level, size_t working_set, const int *cpus, int threads, int ranks)
{
    const pl_cache *own[MAX_LEVELS * threads], *others[MAX_LEVELS * threads];
    const int count = reached(level, cpus, threads, own);
    double wanted[count + 1];       /* of each of its own: bytes per byte */
    memset(wanted, 0, sizeof wanted);
    for (int rank = 0; rank < ranks; rank++) {
        const int found = reached(level, cpus + rank * threads, threads, others);
        double total = 0;
        for (int i = 0; i < found; i++)
            total += (double)others[i]->size;
        for (int i = 0; i < found; i++)
            for (int k = 0; k < count; k++)
                if (is_same(own[k], others[i]))
                    wanted[k] += (double)working_set / total;
    }
    for (int k = 0; k < count; k++)
        if (wanted[k] > 1)
            return false;
    return count > 0;
}

int pl_level_of(size_t working_set, const int *cpus, int threads, int ranks)
{
    for (int level = 1; level <= 3; level++)        /* a fourth level counts as memory: the schema has three */
        if (fits(level, working_set, cpus, threads, ranks))
            return level;
    return 0;
}

int pl_numa_node_count(void)
{
    static int count;
    char line[4096];
    if (count)
        return count;
    if (pl_read_line("/sys/devices/system/node/has_cpu", line, sizeof line)) {
        const pl_cpus nodes = pl_parse_cpulist(line, NULL);
        count = nodes.count;
        free(nodes.cpu);
    }
    return count = count ? count : 1;
}

static int allowed_among(const pl_cpus *shared)
{
    const pl_cpus allowed = pl_allowed_cpus();
    int count = 0;
    for (int i = 0; i < shared->count; i++)
        for (int j = 0; j < allowed.count; j++)
            count += shared->cpu[i] == allowed.cpu[j];
    return count;
}

/* Threads fill a chip first, one on a core: hardware threads of one core, which share its L1, count once. */
size_t pl_cache_share(const pl_case *c, int level)
{
    const pl_caches caches = pl_caches_of(pl_allowed_cpus().cpu[0]);
    int of_core = 1;
    for (int i = 0; i < caches.count; i++)
        if (caches.cache[i].level == 1)
            of_core = allowed_among(&caches.cache[i].shared);
    for (int i = 0; i < caches.count; i++) {
        if (caches.cache[i].level != level)
            continue;
        int cores = allowed_among(&caches.cache[i].shared) / (of_core > 0 ? of_core : 1);
        cores = cores < c->threads ? cores : c->threads;
        return caches.cache[i].size / (size_t)(cores > 1 ? cores : 1);
    }
    return 0;
}
