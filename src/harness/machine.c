/* The state of the node that the program runs on; what cannot be read is null. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "internal.h"

static void text_of(const char *name, const char *path)
{
    char line[1024];
    printf(", \"%s\": ", name);
    pl_write_text(stdout, pl_read_line(path, line, sizeof line) ? line : NULL);
}

static void field(const char *name, const char *path, const char *key)
{
    char value[1024];
    printf(", \"%s\": ", name);
    pl_write_text(stdout, pl_field_of(path, key, value, sizeof value) ? value : NULL);
}

static void list(const pl_cpus cpus)
{
    putchar('[');
    for (int i = 0; i < cpus.count; i++)
        printf("%s%d", i ? ", " : "", cpus.cpu[i]);
    putchar(']');
}

static void mitigations(void)
{
    static const char root[] = "/sys/devices/system/cpu/vulnerabilities";
    struct dirent **entries;
    const int count = scandir(root, &entries, NULL, alphasort);
    bool first = true;
    fputs(", \"mitigations\": {", stdout);
    for (int i = 0; i < count; i++) {
        char path[512], line[512];
        snprintf(path, sizeof path, "%s/%s", root, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && pl_read_line(path, line, sizeof line)) {
            fputs(first ? "" : ", ", stdout);
            pl_write_text(stdout, entries[i]->d_name);
            fputs(": ", stdout);
            pl_write_text(stdout, line);
            first = false;
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    putchar('}');
}

static void caches(int cpu)
{
    const pl_caches all = pl_caches_of(cpu);
    fputs(", \"caches\": [", stdout);
    for (int i = 0; i < all.count; i++) {
        printf("%s{\"level\": %d, \"size\": %zu, \"line\": %d, \"shared_cpus\": ", i ? ", " : "", all.cache[i].level,
               all.cache[i].size, all.cache[i].line);
        list(all.cache[i].shared);
        putchar('}');
    }
    putchar(']');
}

static void capacity(void)
{
    int written = 0;
    for (int level = 1; level < PL_LEVELS; level++)
        if (pl_capacity[level])
            printf("%s\"L%d\": %zu", written++ ? ", " : ", \"capacity\": {", level, pl_capacity[level]);
    fputs(written ? "}" : "", stdout);
}

/* What firmware promises of cores that differ by design is so far apart; within a kind, of which some are preferred or one socket is of another
   bin, it differs in steps of a few per cent. */
#define APART 1.15

/* Each of these says of the CPUs what their kinds differ in, the same of all where that is not known: which of Intel's counters a CPU has, Arm's
   capacities (on x86 since Linux 6.12, where hyper-threading is off), AMD's compact cores, the sizes of the last caches.  None of it may follow
   from a setting: a core that has lost its turbo would be of a kind of its own, and compared with nobody. */

static void counters(pl_cpus allowed, long *found)
{
    static const char *const names[] = {"core", "atom", "lowpower"};
    char line[4096], path[128];
    for (int i = 0; i < allowed.count; i++)
        found[i] = -1;
    for (int n = 0; n < 3; n++) {
        snprintf(path, sizeof path, "/sys/devices/cpu_%s/cpus", names[n]);
        const pl_cpus its = pl_parse_cpulist(pl_read_line(path, line, sizeof line) ? line : "", NULL);
        for (int i = 0; i < its.count; i++)
            for (int j = 0; j < allowed.count; j++)
                if (its.cpu[i] == allowed.cpu[j])
                    found[j] = n;
        free(its.cpu);
    }
}

static int ascending(const void *a, const void *b)
{
    const long one = *(const long *)a, other = *(const long *)b;
    return (one > other) - (one < other);
}

/* The number in a file of each CPU, the same where no gap parts them; -1 of all where one of them has none. */
static void steps(pl_cpus allowed, const char *file, long *found)
{
    char line[64], path[128];
    long *const sorted = pl_allocate(allowed.count * sizeof *sorted, "the numbers of the cores");
    for (int i = 0; i < allowed.count; i++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", allowed.cpu[i], file);
        found[i] = sorted[i] = pl_read_line(path, line, sizeof line) ? atol(line) : -1;
    }
    qsort(sorted, allowed.count, sizeof *sorted, ascending);
    for (int i = 0; i < allowed.count; i++) {
        if (sorted[0] <= 0)
            found[i] = -1;
        for (int j = allowed.count - 1; j >= 0; j--)        /* the lowest that no gap parts from the own */
            if (sorted[j] < found[i] && sorted[j] * APART > found[i])
                found[i] = sorted[j];
    }
    free(sorted);
}

static void capacities(pl_cpus allowed, long *found) { steps(allowed, "cpu_capacity", found); }

/* Of compact cores both the highest clock and the highest performance are lower.  The clock alone is that of a core whose boost is switched
   off, the performance alone ranks preferred cores; Intel's follow the settings, both of them. */
static void compact(pl_cpus allowed, long *found)
{
    char vendor[64];
    bool apart = false;
    steps(allowed, "cpufreq/cpuinfo_max_freq", found);
    for (int i = 0; i < allowed.count; i++)
        apart |= found[i] != found[0];
    if (apart && pl_field_of("/proc/cpuinfo", "vendor_id", vendor, sizeof vendor) && !strcmp(vendor, "AuthenticAMD"))
        steps(allowed, "acpi_cppc/highest_perf", found);
    else
        memset(found, 0, allowed.count * sizeof *found);
}

static void last_caches(pl_cpus allowed, long *found)
{
    for (int i = 0; i < allowed.count; i++) {
        const pl_caches all = pl_caches_of(allowed.cpu[i]);
        found[i] = -1;
        for (int j = 0; j < all.count; j++)
            if (all.cache[j].level == 3)
                found[i] = (long)all.cache[j].size;
    }
}

/* Cores that differ by design, as the kernel has them: each is of one kind.  Nothing where all that may be used are alike. */
static void core_kinds(pl_cpus allowed)
{
    static void (*const told[])(pl_cpus, long *) = {counters, capacities, compact, last_caches};
    long *const found = pl_allocate(2 * allowed.count * sizeof *found, "the kinds of cores"), *const kind = found + allowed.count;
    pl_cpus members = {.cpu = pl_allocate(allowed.count * sizeof(int), "the cores of a kind")};
    int kinds = 0;
    for (size_t n = 0; n < sizeof told / sizeof *told && kinds < 2; n++) {
        told[n](allowed, found);
        kinds = 0;
        for (int i = 0; i < allowed.count; i++) {
            int same = 0;
            while (same < kinds && kind[same] != found[i])
                same++;
            if (same == kinds)
                kind[kinds++] = found[i];
        }
    }
    for (int k = 0; kinds > 1 && k < kinds; k++) {
        members.count = 0;
        for (int i = 0; i < allowed.count; i++)
            if (found[i] == kind[k])
                members.cpu[members.count++] = allowed.cpu[i];
        fputs(k ? ", " : ", \"core_kinds\": [", stdout);
        list(members);
    }
    fputs(kinds > 1 ? "]" : "", stdout);
    free(found);
    free(members.cpu);
}

static void numa_nodes(void)
{
    char line[4096], path[128];
    bool first = true;
    fputs(", \"numa_nodes\": [", stdout);
    if (pl_read_line("/sys/devices/system/node/online", line, sizeof line)) {
        const pl_cpus nodes = pl_parse_cpulist(line, NULL);
        for (int i = 0; i < nodes.count; i++) {
            snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", nodes.cpu[i]);
            if (!pl_read_line(path, line, sizeof line))
                continue;
            const pl_cpus cpus = pl_parse_cpulist(line, NULL);
            printf("%s{\"node\": %d, \"cpus\": ", first ? "" : ", ", nodes.cpu[i]);
            list(cpus);
            putchar('}');
            free(cpus.cpu);
            first = false;
        }
        free(nodes.cpu);
    }
    putchar(']');
}

static void base_clock(const pl_cpus allowed)
{
    const double nominal = strcmp(pl_is_virtual(), "no") ? 0 : pl_nominal_clock();
    const pl_base base = pl_base_clock("", allowed.count ? allowed.cpu[0] : 0, nominal);
    if (!(base.clock > 0)) {
        fputs(", \"base_clock\": null", stdout);
        return;
    }
    printf(", \"base_clock\": {\"mhz\": %.0f, \"source\": \"%s\"", base.clock / 1e6, base.source);
    if (base.nominal > 0)
        printf(", \"nominal_mhz\": %.0f, \"turbo\": %s", base.nominal / 1e6, base.turbo ? "true" : "false");
    putchar('}');
}

/* Inside a virtual machine cores move, and what the topology says is a claim. */
const char *pl_is_virtual(void)
{
#ifdef __x86_64__
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c >> 31 ? "yes" : "no";
#else
    return pl_shown_virtual("");
#endif
}

/* Family and model name a microarchitecture whatever flags a hypervisor hides. */
static void identity(void)
{
#ifdef __x86_64__
    unsigned a, b, c, d, signature, vendor[3];
    if (!__get_cpuid(0, &a, &vendor[0], &vendor[2], &vendor[1]) || !__get_cpuid(1, &signature, &b, &c, &d))
        return;
    const unsigned base = signature >> 8 & 15, family = base == 15 ? base + (signature >> 20 & 255) : base;
    const unsigned model = (signature >> 4 & 15) + (base >= 6 ? signature >> 12 & 0xf0 : 0);
    printf(", \"cpuid\": {\"vendor\": \"%.12s\", \"family\": %u, \"model\": %u, \"stepping\": %u}", (const char *)vendor, family, model,
           signature & 15);
#endif
}

/* The same on Arm, where 64-bit kernels tell no name of a model. */
static void main_id_register(void)
{
    char implementer[64], part[64];
    if (pl_field_of("/proc/cpuinfo", "CPU implementer", implementer, sizeof implementer) &&
        pl_field_of("/proc/cpuinfo", "CPU part", part, sizeof part))
        printf(", \"midr\": {\"implementer\": \"%s\", \"part\": \"%s\"}", implementer, part);
}

void pl_write_machine(void)
{
    char host[256] = "", value[256];
    struct utsname system;
    const pl_cpus allowed = pl_allowed_cpus();
    const double quota = pl_cpu_quota("");
    gethostname(host, sizeof host - 1);
    fputs("{\"record\": \"machine\", \"schema\": 1, \"hostname\": ", stdout);
    pl_write_text(stdout, host);
    field("cpu_model", "/proc/cpuinfo", "model name");
    identity();
    main_id_register();
    field("microcode", "/proc/cpuinfo", "microcode");
    fputs(", \"kernel\": ", stdout);
    pl_write_text(stdout, uname(&system) == 0 ? system.release : NULL);
    text_of("governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    text_of("scaling_driver", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver");
    text_of("huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled");
    printf(", \"huge_page_size\": %zu", pl_huge_page());
    text_of("numa_balancing", "/proc/sys/kernel/numa_balancing");
    mitigations();
    if (pl_field_of("/proc/meminfo", "MemTotal", value, sizeof value))
        printf(", \"memory_kib\": %ld", atol(value));
    else
        fputs(", \"memory_kib\": null", stdout);
    fputs(", \"allowed_cpus\": ", stdout);
    list(allowed);
    if (quota > 0)
        printf(", \"cpu_quota\": %.4g", quota);
    else
        fputs(", \"cpu_quota\": null", stdout);
    caches(allowed.count ? allowed.cpu[0] : 0);
    capacity();
    numa_nodes();
    const char *const among = getenv("PLUMBLINE_AMONG");        /* the CPUs of a check, each process of which may use some of them */
    core_kinds(among ? pl_parse_cpulist(among, NULL) : allowed);
    base_clock(allowed);
    printf(", \"virtual\": \"%s\"", pl_is_virtual());
    if (pl_processes.write_places)
        pl_processes.write_places();
    printf(", \"clock_resolution\": %.3g}\n", pl_clock_resolution());
    fflush(stdout);
}
