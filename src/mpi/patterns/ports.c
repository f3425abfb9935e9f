#define _GNU_SOURCE     /* asprintf */
#include "ports.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"
#include "runtime.h"

/* Of a network device; of an InfiniBand port all that it has. */
static const char *const of_device[] = {"statistics/rx_errors", "statistics/tx_errors", "statistics/rx_dropped", "statistics/tx_dropped",
                                        "statistics/rx_missed_errors", "statistics/rx_bytes", "statistics/tx_bytes", "carrier_down_count"};

typedef struct {
    char *path;
    char port[64];          /* mlx5_0/1, eth0 */
    unsigned long long before;
} counter;

static counter *counters;
static int count;
static bool begun;

static bool value_of(const char *path, unsigned long long *value)
{
    char line[64];
    if (!pl_read_line(path, line, sizeof line) || !isdigit((unsigned char)*line))
        return false;       /* N/A (no PMA) */
    *value = strtoull(line, NULL, 10);
    return true;
}

static void add(char *path, const char *port)
{
    unsigned long long value;
    if (!path || !value_of(path, &value)) {
        free(path);
        return;
    }
    counters = realloc(counters, (size_t)(count + 1) * sizeof *counters);
    if (!counters)
        pl_fail("no memory for the counters of the ports");
    counters[count] = (counter){.path = path, .before = value};
    snprintf(counters[count++].port, sizeof counters->port, "%s", port);
}

static void each(const char *root, const char *pattern, void (*use)(const char *path, const char *below))
{
    char *name;
    glob_t found;
    if (asprintf(&name, "%s/class/%s", root, pattern) < 0)
        return;
    if (glob(name, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            use(found.gl_pathv[i], found.gl_pathv[i] + strlen(root) + strlen("/class/"));
        globfree(&found);
    }
    free(name);
}

static void add_infiniband(const char *path, const char *below)
{
    char device[32], number[16], port[64];
    if (sscanf(below, "infiniband/%31[^/]/ports/%15[^/]/", device, number) != 2)
        return;
    snprintf(port, sizeof port, "%s/%s", device, number);
    add(strdup(path), port);
}

static void add_device(const char *path, const char *below)
{
    char device[32], *file;
    if (sscanf(below, "net/%31[^/]/", device) != 1)
        return;
    for (size_t i = 0; i < sizeof of_device / sizeof *of_device; i++)
        if (asprintf(&file, "%.*s/%s", (int)(strrchr(path, '/') - path), path, of_device[i]) >= 0)
            add(file, device);
}

void ports_begin(const char *root)
{
    if (begun)
        return;
    begun = true;
    if (pl_processes.rank != pl_processes.node)
        return;
    root = root ? root : "/sys";
    each(root, "infiniband/*/ports/*/counters/*", add_infiniband);
    each(root, "net/*/device", add_device);     /* not those that are software only: lo, bridges, containers' */
}

/* Counters of an InfiniBand port that stop at the greatest value of their few bits until somebody clears them (PortCounters; Linux,
 * drivers/infiniband/core/sysfs.c): those of the worst links never grow. */
static bool is_full(const counter *c)
{
    static const struct { const char *name; unsigned long long most; } narrow[] = {
        {"symbol_error", 65535}, {"port_rcv_errors", 65535}, {"port_rcv_remote_physical_errors", 65535},
        {"link_error_recovery", 255}, {"link_downed", 255},
        {"local_link_integrity_errors", 15}, {"excessive_buffer_overrun_errors", 15}};
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        if (!strcmp(strrchr(c->path, '/') + 1, narrow[i].name))
            return c->before == narrow[i].most;
    return false;
}

static void write_port(FILE *f, int first, int last)
{
    const char *separator = "";
    for (int i = first; i < last; i++) {
        unsigned long long now;
        const bool there = value_of(counters[i].path, &now);
        /* One that was set back in between has counted since then at least what it says now. */
        const bool full = there && now == counters[i].before && is_full(&counters[i]);
        const unsigned long long grown = !there || full ? 1 : now >= counters[i].before ? now - counters[i].before : now;
        if (!grown)
            continue;
        char name[128];
        snprintf(name, sizeof name, "%s%s", strrchr(counters[i].path, '/') + 1, full ? "_full" : "");
        fputs(separator, f);
        pl_write_text(f, there ? name : "gone");
        fprintf(f, ": %llu", grown);
        if (!there)
            return;
        separator = ", ";
    }
}

/* An entry of the record's list: of the first process of a node. */
static char *of_node(void)
{
    char *text = NULL, host[256] = "";
    size_t length;
    FILE *f = open_memstream(&text, &length);
    if (!f)
        pl_fail("no memory for the counters of the ports");
    gethostname(host, sizeof host - 1);
    fputs("{\"host\": ", f);
    pl_write_text(f, host);
    fputs(", \"ports\": {", f);
    for (int first = 0, last; first < count; first = last) {
        for (last = first; last < count && !strcmp(counters[last].port, counters[first].port); last++)
            ;
        fputs(first ? ", " : "", f);
        pl_write_text(f, counters[first].port);
        fputs(": {", f);
        write_port(f, first, last);
        fputc('}', f);
    }
    fputs("}}", f);
    fclose(f);
    return text;
}

void ports_end(void)
{
    if (!begun)
        return;     /* on all processes alike */
    char *const own = pl_processes.rank == pl_processes.node ? of_node() : NULL;
    int length = own ? (int)strlen(own) : 0, all = 0, *lengths = NULL, *places = NULL;
    char *text = NULL;
    if (pl_processes.rank == 0) {
        lengths = pl_allocate((size_t)pl_processes.ranks * sizeof *lengths, "the counters of the ports");
        places = pl_allocate((size_t)pl_processes.ranks * sizeof *places, "the counters of the ports");
    }
    MPI_Gather(&length, 1, MPI_INT, lengths, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int rank = 0; lengths && rank < pl_processes.ranks; rank++) {
        places[rank] = all;
        all += lengths[rank];
    }
    if (lengths)
        text = pl_allocate((size_t)all + 1, "the counters of the ports");
    MPI_Gatherv(own, length, MPI_CHAR, text, lengths, places, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (text) {
        const char *separator = "";
        fputs("{\"record\": \"ports\", \"schema\": 1, \"nodes\": [", stdout);
        for (int rank = 0; rank < pl_processes.ranks; rank++)
            if (lengths[rank]) {
                printf("%s%.*s", separator, lengths[rank], text + places[rank]);
                separator = ", ";
            }
        puts("]}");
        fflush(stdout);
    }
    free(text);
    free(places);
    free(lengths);
    free(own);
}
