/* What must not rise during a burn: errors that the memory controllers have counted (EDAC), machine checks, throttling for heat. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "burn.h"

enum { CORRECTED, UNCORRECTED, MACHINE_CHECKS, THROTTLED, COUNTS };
static const char *const names[COUNTS] = {"memory_corrected", "memory_uncorrected", "machine_checks", "throttled"};
static const char *base = "";
static double begin[COUNTS];        /* below 0: not readable */

bool burn_number_in(const char *path, double *value)
{
    char line[64], *end;
    if (!pl_read_line(path, line, sizeof line))
        return false;
    *value = strtod(line, &end);
    return end != line;
}

static int is_controller(const struct dirent *e) { return e->d_name[0] == 'm' && e->d_name[1] == 'c' && e->d_name[2] >= '0' && e->d_name[2] <= '9'; }

/* Over all memory controllers; below 0 without one. */
static double of_memory(const char *file)
{
    char path[512];
    struct dirent **controllers = NULL;
    double sum = -1, value;
    snprintf(path, sizeof path, "%s/sys/devices/system/edac/mc", base);
    const int count = scandir(path, &controllers, is_controller, alphasort);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/sys/devices/system/edac/mc/%.64s/%s", base, controllers[i]->d_name, file);
        if (burn_number_in(path, &value))
            sum = (sum < 0 ? 0 : sum) + value;
        free(controllers[i]);
    }
    free(controllers);
    return sum;
}

/* Machine check exceptions, and errors that were deferred (AMD), of all CPUs. */
static double of_checks(void)
{
    char path[512], *text = NULL;
    size_t room = 0;
    double sum = -1;
    snprintf(path, sizeof path, "%s/proc/interrupts", base);
    FILE *const f = fopen(path, "r");
    while (f && getline(&text, &room, f) > 0) {
        char *at = text + strspn(text, " "), *end;
        if (strncmp(at, "MCE:", 4) != 0 && strncmp(at, "DFR:", 4) != 0)
            continue;
        sum = sum < 0 ? 0 : sum;
        for (at += 4;; at = end) {
            const double count = strtod(at, &end);
            if (end == at)
                break;
            sum += count;
        }
    }
    if (f)
        fclose(f);
    free(text);
    return sum;
}

/* How often the cores were throttled since the first call, and the socket that was most often: each CPU of a socket counts the socket's. */
static double of_throttling(void)
{
    static const char *const of[2] = {"core", "package"};
    static double *first;       /* of each CPU: below 0 where it is not known */
    const pl_cpus allowed = pl_allowed_cpus();
    if (!first) {
        first = pl_allocate(2 * (size_t)allowed.count * sizeof *first, "the counts");
        for (int i = 0; i < 2 * allowed.count; i++)
            first[i] = -1;
    }
    double gained[2] = {0, 0}, value;
    bool known = false;
    for (int i = 0; i < 2 * allowed.count; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/thermal_throttle/%s_throttle_count", base, allowed.cpu[i / 2], of[i % 2]);
        if (!burn_number_in(path, &value))
            continue;
        known = true;
        if (first[i] < 0 || value < first[i])
            first[i] = first[i] < 0 ? value : 0;        /* somebody has set it to 0 */
        value -= first[i];
        gained[i % 2] = i % 2 == 0 ? gained[0] + value : value > gained[1] ? value : gained[1];
    }
    return known ? gained[0] + gained[1] : -1;
}

static void read_all(double *count)
{
    count[CORRECTED] = of_memory("ce_count");
    count[UNCORRECTED] = of_memory("ue_count");
    count[MACHINE_CHECKS] = of_checks();
    count[THROTTLED] = of_throttling();
}

void burn_counts_open(const char *root)
{
    base = root;
    read_all(begin);
}

void burn_counts_write(FILE *f)
{
    double now[COUNTS];
    read_all(now);
    for (int i = 0; i < COUNTS; i++)
        if (begin[i] < 0 || now[i] < 0)
            fprintf(f, ", \"%s\": null", names[i]);
        else
            fprintf(f, ", \"%s\": %.0f", names[i], now[i] < begin[i] ? now[i] : now[i] - begin[i]);      /* somebody has set it to 0 */
}

void burn_counts_missing(FILE *f, const char *separator)
{
    static const char *const why[COUNTS] = {
        "/sys/devices/system/edac/mc has no memory controller: no ECC, or no EDAC driver for it",
        "/sys/devices/system/edac/mc has no memory controller: no ECC, or no EDAC driver for it",
        "/proc/interrupts has no line MCE", "/sys/devices/system/cpu/cpu*/thermal_throttle is not there"};
    for (int i = 0; i < COUNTS; i++)
        if (begin[i] < 0) {
            fprintf(f, "%s\"%s\": ", separator, names[i]);
            pl_write_text(f, why[i]);
            separator = ", ";
        }
}
