/* CPUs that may be used, and their caches, as the operating system tells them. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { MAX_LEVELS = 5, MOST_CPUS = 1 << 16 };

bool pl_read_line(const char *path, char *line, size_t length)
{
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    const bool read = fgets(line, (int)length, f) != NULL;
    fclose(f);
    if (read)
        *strchrnul(line, '\n') = 0;
    return read;
}

/* First line of a "name : value" file whose name begins as given. */
bool pl_field_of(const char *path, const char *name, char *value, size_t length)
{
    FILE *f = fopen(path, "r");
    char line[4096];
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f))
        if (!strncmp(line, name, strlen(name)) && strchr(line, ':')) {
            const char *p = strchr(line, ':') + 1;
            snprintf(value, length, "%s", p + strspn(p, " \t"));
            *strchrnul(value, '\n') = 0;
            found = true;
        }
    if (f)
        fclose(f);
    return found;
}

/* By what the kernel and the firmware show of a hypervisor: its node in the device tree, Xen's, and the names in DMI, from which the kernel has
 * taken the blanks.  Amazon's real machines have Amazon's name, too, and are instances like c7g.metal. */
const char *pl_shown_virtual(const char *root)
{
    static const char *const shown[] = {"proc/device-tree/hypervisor/compatible", "sys/hypervisor/type"};
    static const char *const names[] = {":svnQEMU:", ":pnKVM", ":svnAmazonEC2:", ":pnGoogleComputeEngine:", ":pnVirtualMachine:", ":svnVMware",
                                        ":svnXen:", ":pnOpenStack", ":pnAlibabaCloudECS:", ":pnAHV:", ":pnAppleVirtualization", ":svnParallels"};
    char path[512], line[4096];
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        snprintf(path, sizeof path, "%s/%s", root, shown[i]);
        if (pl_read_line(path, line, sizeof line))
            return "yes";
    }
    snprintf(path, sizeof path, "%s/sys/class/dmi/id/modalias", root);
    if (!pl_read_line(path, line, sizeof line))
        return "not known";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(line, names[i]) && !strstr(line, ".metal"))
            return "yes";
    return "no";
}

/* "7" or "0-3"; false, and `at` stays, if there is no such range of CPUs. */
static bool next_range(const char **at, long *first, long *last)
{
    const char *text = *at;
    char *end;
    if (!isdigit((unsigned char)*text))     /* NOLINT(clang-analyzer-security.ArrayBound): strtol() ends within the text, whoever wrote it */
        return false;
    *first = *last = strtol(text, &end, 10);
    if (*end == '-') {
        text = end + 1;
        if (!isdigit((unsigned char)*text))
            return false;
        *last = strtol(text, &end, 10);
    }
    if (*last < *first || *last >= MOST_CPUS)
        return false;
    *at = end;
    return true;
}

static void append(pl_cpus *list, int cpu)
{
    if (list->count >= 16 ? !(list->count & (list->count - 1)) : !list->cpu)    /* full: room for 16, 32, 64, ... */
        list->cpu = pl_grow(list->cpu, (list->count ? 2 * (size_t)list->count : 16) * sizeof *list->cpu, "a list of CPUs");
    list->cpu[list->count++] = cpu;
}

/* "0-3,8" as the kernel writes it. */
pl_cpus pl_parse_cpulist(const char *text, const char **rest)
{
    pl_cpus list = {0, NULL};
    long cpu, last;
    while (next_range(&text, &cpu, &last)) {
        for (; cpu <= last; cpu++)
            append(&list, (int)cpu);
        if (*text != ',' || !isdigit((unsigned char)text[1]))
            break;
        text++;
    }
    if (rest)
        *rest = text;
    return list;
}

/* The kernel refuses a set that is smaller than its own, which may have more than the 1024 CPUs of a cpu_set_t. */
static void append_affinity(pl_cpus *list)
{
    for (int room = CPU_SETSIZE; room <= MOST_CPUS; room *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)room);
        if (!set)
            pl_fail("no memory for a list of CPUs");
        const size_t size = CPU_ALLOC_SIZE((size_t)room);
        const bool known = sched_getaffinity(0, size, set) == 0;
        for (int cpu = 0; known && cpu < room; cpu++)
            if (CPU_ISSET_S((size_t)cpu, size, set))
                append(list, cpu);
        CPU_FREE(set);
        if (known || errno != EINVAL)
            return;
    }
}

static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* The affinity of the process as it was before the first thread was bound: likwid-pin leaves its own list in
 * LIKWID_PIN (and has refused CPUs that are not allowed), OpenMP knows its places. */
pl_cpus pl_allowed_cpus(void)
{
    static pl_cpus list;
    if (list.cpu)
        return list;
    append_affinity(&list);
    const char *pinned = getenv("LIKWID_PIN");
    const pl_cpus extra[] = {pl_parse_cpulist(pinned ? pinned : "", NULL), pl_openmp_places()};
    for (int e = 0; e < 2; e++) {
        for (int i = 0; i < extra[e].count; i++)
            append(&list, extra[e].cpu[i]);
        free(extra[e].cpu);
    }
    if (list.count)
        qsort(list.cpu, (size_t)list.count, sizeof *list.cpu, ascending);
    int count = 0;
    for (int i = 0; i < list.count; i++)
        if (i == 0 || list.cpu[i] != list.cpu[i - 1])
            list.cpu[count++] = list.cpu[i];
    list.count = count;
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
    static pl_caches known[MOST_CPUS];
    if (cpu < 0 || cpu >= MOST_CPUS)
        return (pl_caches){0, NULL};
    if (!known[cpu].cache)
        known[cpu] = read_caches(cpu);
    return known[cpu];
}

size_t pl_capacity[PL_LEVELS];

/* Bytes of a cache that are ours. */
static size_t size_of(const pl_cache *cache)
{
    const size_t ours = cache->level < PL_LEVELS ? pl_capacity[cache->level] : 0;
    return ours && ours < cache->size ? ours : cache->size;
}

/* The distinct caches of one level that these CPUs reach: at most as many; how many. */
static int reached(int level, const int *cpus, int count, const pl_cache **found)
{
    int caches = 0;
    bool *const served = pl_allocate(MOST_CPUS * sizeof *served, "the list of CPUs");
    for (int i = 0; i < count; i++) {
        const pl_caches all = pl_caches_of(cpus[i]);
        if (!all.count || served[cpus[i]])
            continue;
        served[cpus[i]] = true;
        for (int j = 0; j < all.count; j++) {
            if (all.cache[j].level != level)
                continue;
            found[caches++] = &all.cache[j];
            for (int s = 0; s < all.cache[j].shared.count; s++)
                served[all.cache[j].shared.cpu[s]] = true;
        }
    }
    free(served);
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
            total += (double)size_of(others[i]);
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

int pl_count_together(const pl_cpus *bound, int threads, const pl_cpus *node, int nodes)
{
    int first = -1;
    for (int thread = 0; thread < threads; thread++)
        for (int i = 0; i < bound[thread].count; i++) {
            int of_cpu = -1;
            for (int k = 0; k < nodes; k++)
                for (int j = 0; j < node[k].count; j++)
                    of_cpu = node[k].cpu[j] == bound[thread].cpu[i] ? k : of_cpu;
            first = thread == 0 && i == 0 ? of_cpu : first;
            if (of_cpu < 0 || of_cpu != first)
                return thread;
        }
    return threads;
}

static void note_affinity(int thread, void *bound) { append_affinity((pl_cpus *)bound + thread); }

bool pl_on_one_node(int threads)
{
    static int asked, together;
    char line[4096], path[128];
    if (pl_numa_node_count() == 1 || threads <= together || threads <= asked)
        return pl_numa_node_count() == 1 || threads <= together;
    pl_cpus *const bound = pl_allocate((size_t)threads * sizeof *bound, "the list of CPUs");
    pl_team(threads, note_affinity, bound);
    const pl_cpus nodes = pl_parse_cpulist(
        pl_read_line("/sys/devices/system/node/has_cpu", line, sizeof line) ? line : "", NULL);
    pl_cpus *const node = pl_allocate((size_t)nodes.count * sizeof *node, "the list of CPUs");
    for (int i = 0; i < nodes.count; i++) {
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", nodes.cpu[i]);
        if (pl_read_line(path, line, sizeof line))
            node[i] = pl_parse_cpulist(line, NULL);
    }
    together = pl_count_together(bound, threads, node, nodes.count);
    asked = threads;
    for (int i = 0; i < threads; i++)
        free(bound[i].cpu);
    for (int i = 0; i < nodes.count; i++)
        free(node[i].cpu);
    free(bound);
    free(node);
    free(nodes.cpu);
    return threads <= together;
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

/* Threads fill a socket first, one on a core: hardware threads of one core, which share its L1, count once. */
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
        return size_of(&caches.cache[i]) / (size_t)(cores > 1 ? cores : 1);
    }
    return 0;
}
