/* Temperatures (hwmon) and power (RAPL), where they can be read. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "burn.h"

enum { MOST = 256, NAME = 64, PATH = 512 };
static const double most_celsius = 200;     /* some sensors that are not connected say 255 */

typedef struct { char name[NAME], path[PATH]; } sensor;
typedef struct { sensor at; double range, begin; bool there; } meter;      /* uJ */

static sensor temperatures[MOST];       /* of one chip one after the other */
static meter meters[MOST];
static int temperature_count, meter_count;
static char no_temperature[2 * PATH], no_power[2 * PATH];

static int is_hwmon(const struct dirent *e) { return !strncmp(e->d_name, "hwmon", 5); }
static int is_rapl(const struct dirent *e) { return !strncmp(e->d_name, "intel-rapl:", 11); }

/* Why a file cannot be read. */
static const char *reason(const char *path)
{
    errno = 0;
    FILE *f = fopen(path, "r");
    if (f) {
        (void)fgetc(f);
        const int error = errno;
        fclose(f);
        return error ? strerror(error) : "it holds no number";
    }
    return strerror(errno);
}

/* The chip's name, with a number where others have it, too. */
static void name_chip(char *to, const char *folder, int others)
{
    char path[PATH + 8], name[NAME - 16];
    snprintf(path, sizeof path, "%s/name", folder);
    if (!pl_read_line(path, name, sizeof name))
        snprintf(name, sizeof name, "unknown");
    int same = 1;
    for (int i = 0; i < others; i++) {
        const size_t n = strlen(name);
        if (!strncmp(temperatures[i].name, name, n) && (!temperatures[i].name[n] || temperatures[i].name[n] == '.') &&
            (i == 0 || strcmp(temperatures[i].name, temperatures[i - 1].name) != 0))
            same++;
    }
    if (same == 1)
        snprintf(to, NAME, "%s", name);
    else
        snprintf(to, NAME, "%s.%d", name, same);
}

static void open_temperatures(const char *root)
{
    enum { INPUTS = 128 };
    char folder[PATH - 64];
    struct dirent **chips = NULL;
    snprintf(folder, sizeof folder, "%s/sys/class/hwmon", root);
    const int count = scandir(folder, &chips, is_hwmon, alphasort);
    snprintf(no_temperature, sizeof no_temperature, "%s has no temperature that can be read", folder);
    for (int i = 0; i < count; i++) {
        char chip[PATH], name[NAME];
        snprintf(chip, sizeof chip, "%s/%.48s", folder, chips[i]->d_name);
        name_chip(name, chip, temperature_count);
        for (int input = 1; input < INPUTS && temperature_count < MOST; input++) {
            sensor *const s = &temperatures[temperature_count];
            double value;
            if (snprintf(s->path, sizeof s->path, "%s/temp%d_input", chip, input) < PATH && burn_number_in(s->path, &value)) {
                memcpy(s->name, name, sizeof name);
                temperature_count++;
            }
        }
        free(chips[i]);
    }
    free(chips);
}

/* package-0, package-0.dram */
static void name_meter(char *to, const char *root, const char *zone)
{
    char path[PATH], parent[128], name[24] = "", of_parent[24] = "";
    snprintf(path, sizeof path, "%s/sys/class/powercap/%.100s/name", root, zone);
    (void)pl_read_line(path, name, sizeof name);
    snprintf(parent, sizeof parent, "%.100s", zone);
    char *const last = strrchr(parent, ':');
    if (last != strchr(parent, ':')) {
        *last = 0;
        snprintf(path, sizeof path, "%s/sys/class/powercap/%.100s/name", root, parent);
        (void)pl_read_line(path, of_parent, sizeof of_parent);
    }
    snprintf(to, NAME, "%s%s%.32s", of_parent, *of_parent ? "." : "", *name ? name : zone);
}

static void open_meters(const char *root)
{
    char folder[PATH - 128];
    struct dirent **zones = NULL;
    snprintf(folder, sizeof folder, "%s/sys/class/powercap", root);
    const int count = scandir(folder, &zones, is_rapl, alphasort);
    snprintf(no_power, sizeof no_power, "%s has no energy counter", folder);
    for (int i = 0; i < count; i++) {
        char range[PATH];
        double value;
        meter *const m = &meters[meter_count];
        if (meter_count == MOST)
            break;
        snprintf(m->at.path, sizeof m->at.path, "%s/%.80s/energy_uj", folder, zones[i]->d_name);
        snprintf(range, sizeof range, "%s/%.80s/max_energy_range_uj", folder, zones[i]->d_name);
        if (burn_number_in(m->at.path, &value) && burn_number_in(range, &m->range)) {
            name_meter(m->at.name, root, zones[i]->d_name);
            meter_count++;
        } else
            snprintf(no_power, sizeof no_power, "%s: %s", m->at.path, reason(m->at.path));
    }
    for (int i = 0; i < count; i++)
        free(zones[i]);
    free(zones);
}

void burn_sensors_open(const char *root)
{
    open_temperatures(root);
    open_meters(root);
}

void burn_sensors_begin(void)
{
    for (int i = 0; i < meter_count; i++)
        meters[i].there = burn_number_in(meters[i].at.path, &meters[i].begin);
}

void burn_sensors_write(FILE *f, double seconds)
{
    fputs(", \"temperature\": {", f);
    for (int i = 0, before = 0; i < temperature_count;) {
        const char *const chip = temperatures[i].name;
        double hottest = -INFINITY, value;
        for (; i < temperature_count && !strcmp(temperatures[i].name, chip); i++)
            if (burn_number_in(temperatures[i].path, &value) && value / 1e3 < most_celsius)
                hottest = fmax(hottest, value / 1e3);
        if (isfinite(hottest)) {
            fputs(before++ ? ", " : "", f);
            pl_write_text(f, chip);
            fprintf(f, ": %.1f", hottest);
        }
    }
    fputs("}, \"power\": {", f);
    for (int i = 0, before = 0; i < meter_count; i++) {
        double end;
        if (!meters[i].there || !burn_number_in(meters[i].at.path, &end))
            continue;
        const double used = end - meters[i].begin + (end < meters[i].begin ? meters[i].range : 0);     /* it begins again at 0 */
        fputs(before++ ? ", " : "", f);
        pl_write_text(f, meters[i].at.name);
        fprintf(f, ": %.2f", used / 1e6 / seconds);
    }
    fputs("}", f);
}

void burn_sensors_missing(FILE *f)
{
    const char *separator = "";
    if (!temperature_count) {
        fputs("\"temperature\": ", f);
        pl_write_text(f, no_temperature);
        separator = ", ";
    }
    if (!meter_count) {
        fprintf(f, "%s\"power\": ", separator);
        pl_write_text(f, no_power);
        separator = ", ";
    }
    burn_counts_missing(f, separator);
}
