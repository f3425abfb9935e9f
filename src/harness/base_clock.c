/* The clock that the processor promises with all cores at work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
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

double pl_nominal_clock(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    const bool intel = __get_cpuid(0, &a, &b, &c, &d) && b == signature_INTEL_ebx;
    const bool hybrid = __get_cpuid_count(7, 0, &a, &b, &c, &d) && d >> 15 & 1;     /* its small cores have a base clock of their own */
    if (intel && !hybrid && __get_cpuid(0x80000007, &a, &b, &c, &d) && d >> 8 & 1)
        return counter_clock();
#endif
    return 0;
}

/* intel_pstate reads base_frequency anew from what the processor guarantees at the moment (IA32_HWP_CAPABILITIES): limits of power and heat
 * lower that, and so does a profile (SST-PP).  Otherwise counter and file differ by rounding, which is less. */
static const double lowered = 0.98;

pl_base pl_base_clock(const char *root, int cpu, double nominal)
{
    static const struct { const char *path, *source; double unit; bool falls; } files[] = {
        {"cpufreq/base_frequency", "cpufreq", 1e3, true}, {"acpi_cppc/nominal_freq", "ACPI CPPC", 1e6, false}};
    char path[512], line[64];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/%s", root, cpu, files[i].path);
        pl_base base = {.clock = pl_read_line(path, line, sizeof line) ? atof(line) * files[i].unit : 0, .source = files[i].source};
        if (!(base.clock > 0))
            continue;
        if (files[i].falls && base.clock < lowered * nominal) {
            snprintf(path, sizeof path, "%s/sys/devices/system/cpu/intel_pstate/no_turbo", root);
            base.nominal = nominal;
            base.turbo = pl_read_line(path, line, sizeof line) && !strcmp(line, "0");
        }
        return base;
    }
#if defined(__x86_64__)
    return (pl_base){.clock = nominal > 0 ? nominal : counter_clock(), .source = "time-stamp counter"};
#else
    return (pl_base){.clock = 0};
#endif
}
