/* The clock that the processor promises with all cores at work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "internal.h"

#if defined(__x86_64__)
typedef struct { double seconds, apart; unsigned long long count; } reading;

/* Clock and counter at one time: of several readings the one between which least happened, since this thread may be interrupted. */
static reading read_both(void)
{
    reading best = {.apart = 1};
    for (int i = 0; i < 20; i++) {
        const double begin = pl_now();
        const unsigned long long count = __rdtsc();
        const double end = pl_now();
        if (end - begin < best.apart)
            best = (reading){(begin + end) / 2, end - begin, count};
    }
    return best;
}

/* Where the time-stamp counter does not change its clock, that clock is the processor's base clock (Intel SDM, volume 3, 18.17; AMD
 * APM, volume 2, 13.2.4: P0). */
static double counter_clock(void)
{
    char flags[8192];
    if (!pl_field_of("/proc/cpuinfo", "flags", flags, sizeof flags) || !strstr(flags, " constant_tsc"))
        return 0;
    const reading first = read_both();
    while (pl_now() - first.seconds < 5e-3)
        ;
    const reading last = read_both();
    return (double)(last.count - first.count) / (last.seconds - first.seconds);
}
#endif

double pl_base_clock(int cpu, const char **source)
{
    static const struct { const char *path, *source; double unit; } files[] = {
        {"/sys/devices/system/cpu/cpu%d/cpufreq/base_frequency", "cpufreq", 1e3},
        {"/sys/devices/system/cpu/cpu%d/acpi_cppc/nominal_freq", "ACPI CPPC", 1e6}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[128], line[64];
        snprintf(path, sizeof path, files[i].path, cpu);
        const double clock = pl_read_line(path, line, sizeof line) ? atof(line) * files[i].unit : 0;
        *source = files[i].source;
        if (clock > 0)
            return clock;
    }
#if defined(__x86_64__)
    *source = "time-stamp counter";
    return counter_clock();
#else
    return 0;
#endif
}
