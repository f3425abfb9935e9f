/* What the control groups of this process grant: the tightest limit of its own group and of all parents counts, in
 * version 2 (one hierarchy) and version 1 (one per controller).  Batch systems and containers set them there. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

typedef double limit_of(const char *folder);    /* infinite where there is none */

/* Of the folder of a group and of all above it, to the mount point.  In a container the path may be that of the host:
 * then only the mount point is there, and it is the container's group. */
static double upwards(const char *mount, const char *path, limit_of *limit)
{
    char folder[4096];
    double least = INFINITY;
    if (snprintf(folder, sizeof folder, "%s%s", mount, path) >= (int)sizeof folder)
        return least;
    for (char *slash; (slash = strrchr(folder, '/')) && strlen(folder) >= strlen(mount); *slash = 0)
        least = fmin(least, limit(folder));
    return least;
}

static bool has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *p = list; (p = strstr(p, word)); p += length)
        if ((p == list || p[-1] == ',') && (!p[length] || p[length] == ','))
            return true;
    return false;
}

/* /proc/self/cgroup has a line "number:controllers:path" for each hierarchy; version 2 names no controllers. */
static double tightest(const char *root, const char *controller, limit_of *version1, limit_of *version2)
{
    char file[512], line[4096], mount[1024];
    double least = INFINITY;
    snprintf(file, sizeof file, "%s/proc/self/cgroup", root);
    FILE *f = fopen(file, "r");
    while (f && fgets(line, sizeof line, f)) {
        char *rest = line;
        strsep(&rest, ":");
        const char *controllers = strsep(&rest, ":");
        if (!rest)
            continue;
        rest[strcspn(rest, "\n")] = 0;
        if (!*controllers) {
            snprintf(mount, sizeof mount, "%s/sys/fs/cgroup", root);
            least = fmin(least, upwards(mount, rest, version2));
            snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/unified", root);
            least = fmin(least, upwards(mount, rest, version2));
        } else if (has_word(controllers, controller)) {
            snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/%s", root, controller);
            least = fmin(least, upwards(mount, rest, version1));
            snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/%s", root, controllers);    /* cpu,cpuacct: cpu is not everywhere a link to it */
            least = fmin(least, upwards(mount, rest, version1));
        }
    }
    if (f)
        fclose(f);
    return least;
}

static bool read_in(const char *folder, const char *name, char *line, size_t length)
{
    char path[5000];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return pl_read_line(path, line, length);
}

/* Of the line "name number" of a file of a group; not a number, which is no limit, where there is none. */
static double number_in(const char *folder, const char *file, const char *name)
{
    char path[5000], line[128], key[64];
    double value = NAN, number;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%63s %lf", key, &number) == 2 && !strcmp(key, name))
            value = number;
    if (f)
        fclose(f);
    return value;
}

/* --- CPU time ------------------------------------------------------------------------------------------------- */

static double quota2(const char *folder)
{
    char line[128];
    double quota, period;
    const bool limited = read_in(folder, "cpu.max", line, sizeof line) && sscanf(line, "%lf %lf", &quota, &period) == 2;
    return limited && quota > 0 && period > 0 ? quota / period : INFINITY;     /* "max 100000": no number, no limit */
}

static double quota1(const char *folder)
{
    char quota[128], period[128];
    const bool limited = read_in(folder, "cpu.cfs_quota_us", quota, sizeof quota) &&
                         read_in(folder, "cpu.cfs_period_us", period, sizeof period);
    return limited && atof(quota) > 0 && atof(period) > 0 ? atof(quota) / atof(period) : INFINITY;
}

double pl_cpu_quota(const char *root)
{
    const double quota = tightest(root, "cpu", quota1, quota2);
    return isfinite(quota) ? quota : 0;
}

/* From the first look at a group on: a parent may have been throttled for hours before.  Negative, so that the tightest is the group that was
 * throttled the longest. */
static double since_first(const char *folder, double seconds)
{
    static struct { char *folder; double seconds; } *first;
    static size_t known;
    size_t i = 0;
    while (i < known && strcmp(first[i].folder, folder))
        i++;
    if (i == known && isfinite(seconds)) {
        first = pl_grow(first, (known + 1) * sizeof *first, "the control groups");
        first[known].folder = strcpy(pl_allocate(strlen(folder) + 1, "the control groups"), folder);
        first[known++].seconds = seconds;
    }
    return i < known ? first[i].seconds - seconds : NAN;
}

static double throttled2(const char *folder) { return since_first(folder, 1e-6 * number_in(folder, "cpu.stat", "throttled_usec")); }
static double throttled1(const char *folder) { return since_first(folder, 1e-9 * number_in(folder, "cpu.stat", "throttled_time")); }

double pl_throttled(const char *root)
{
    const double seconds = -tightest(root, "cpu", throttled1, throttled2);
    return isfinite(seconds) ? seconds : NAN;
}

/* --- memory --------------------------------------------------------------------------------------------------- */

static double bytes_in(const char *folder, const char *name)
{
    char line[128];
    return read_in(folder, name, line, sizeof line) && atof(line) > 0 ? atof(line) : INFINITY;
}

/* Less what the group has charged already, but for pages of files, which are taken back where others need them. */
static double left(const char *folder, const char *limit, const char *charged, const char *active, const char *inactive)
{
    const double used = bytes_in(folder, charged), files = number_in(folder, "memory.stat", active) + number_in(folder, "memory.stat", inactive);
    return fmax(0, bytes_in(folder, limit) - (isfinite(used) ? fmax(0, used - fmax(0, files)) : 0));
}

static double memory2(const char *folder) { return left(folder, "memory.max", "memory.current", "active_file", "inactive_file"); }

static double memory1(const char *folder)
{
    return left(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_active_file", "total_inactive_file");
}

double pl_memory_left(const char *root) { return tightest(root, "memory", memory1, memory2); }
