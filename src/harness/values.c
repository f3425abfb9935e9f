/* Values and lists of values, as they stand on the command line: read, and checked. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* --- single values -------------------------------------------------------------------------------------------- */

long pl_parse_number(const char *option, const char *text, long smallest, long largest)
{
    char *end;
    const long value = strtol(text, &end, 10);
    if (end == text || *end || value < smallest || value > largest)
        pl_fail("--%s %s: give a whole number from %ld to %ld", option, text, smallest, largest);
    return value;
}

size_t pl_parse_size(const char *option, const char *text, double smallest, double largest)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= smallest && value <= largest) || value != floor(value))
        pl_fail("--%s %s: give a whole number from %.0f to %g", option, text, smallest, largest);
    return (size_t)value;
}

double pl_parse_seconds(const char *option, const char *text)
{
    const double least = PL_TICKS * pl_clock_resolution(), most = 60;
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most))
        pl_fail("--%s %s: give seconds, from %d times the clock's resolution (%.2g s) to %g", option, text, PL_TICKS, least, most);
    return value;
}

int pl_parse_position(const char *option, const char *text, const char *const *known)
{
    char all[1024] = "";
    for (int i = 0; known[i]; i++) {
        if (!strcmp(known[i], text))
            return i;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", known[i]);
    }
    pl_fail("--%s %s: give one of %s", option, text, all);
}

/* --- lists ---------------------------------------------------------------------------------------------------- */

char *pl_duplicate(const char *text)
{
    char *copy = pl_allocate(strlen(text) + 1, "an option");
    return strcpy(copy, text);
}

char *pl_next_item(const char *option, char **rest)
{
    char *item = strsep(rest, ",");
    if (item && !*item)
        pl_fail("--%s: an item of the list is empty: give items with one comma between them", option);
    return item;
}

void pl_add_size(pl_sizes *list, size_t value)
{
    list->value = pl_grow(list->value, (size_t)(list->count + 1) * sizeof *list->value, "a list of sizes");
    list->value[list->count++] = value;
}

void pl_add_number(pl_numbers *list, int value)
{
    list->value = pl_grow(list->value, (size_t)(list->count + 1) * sizeof *list->value, "a list of numbers");
    list->value[list->count++] = value;
}

void pl_parse_sizes(const char *option, const char *text, pl_sizes *list, double smallest, double largest)
{
    char *const copy = pl_duplicate(text), *rest = copy, *item;
    while ((item = pl_next_item(option, &rest)))
        pl_add_size(list, pl_parse_size(option, item, smallest, largest));
    free(copy);
}

/* Without repetition: the limit streams are interleaved once for each number of threads. */
void pl_parse_thread_counts(const char *text, pl_numbers *list)
{
    char *const copy = pl_duplicate(text), *rest = copy, *item;
    while ((item = pl_next_item("threads", &rest))) {
        const int threads = (int)pl_parse_number("threads", item, 1, INT_MAX);
        for (int i = 0; i < list->count; i++)
            if (list->value[i] == threads)
                pl_fail("--threads: %d stands there twice: give each number of threads once", threads);
        pl_add_number(list, threads);
    }
    free(copy);
}

void pl_parse_sweep(const char *text, pl_sizes *list)
{
    char *const copy = pl_duplicate(text), *rest = copy;
    const char *first_text = strsep(&rest, ":"), *last_text = strsep(&rest, ":"), *points_text = rest;
    if (!last_text || !points_text)
        pl_fail("--sweep %s: give FIRST:LAST:POINTS, for example 10:1e7:40", text);
    const double first = (double)pl_parse_size("sweep", first_text, 1, PL_MAX_SIZE);
    const double last = (double)pl_parse_size("sweep", last_text, 1, PL_MAX_SIZE);
    const long points = pl_parse_number("sweep", points_text, 2, 10000);
    if (last <= first)
        pl_fail("--sweep %s: the last size must be above the first", text);
    for (long i = 0; i < points; i++) {
        const size_t n = (size_t)llround(first * pow(last / first, (double)i / (double)(points - 1)));
        bool known = false;
        for (int k = 0; k < list->count; k++)
            known |= list->value[k] == n;
        if (!known)
            pl_add_size(list, n);
    }
    free(copy);
}

void pl_parse_words(const char *option, const char *text, const char *const *known, pl_numbers *list)
{
    char *const copy = pl_duplicate(text), *rest = copy, *item;
    while ((item = pl_next_item(option, &rest)))
        pl_add_number(list, pl_parse_position(option, item, known));
    free(copy);
}
