#include "latency.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

lat_settings lat_set;

static const double most = 1e6;     /* us */
static const char *const names[] = {"PLUMBLINE_LATENCY_US", "PLUMBLINE_OVERHEAD_US", "PLUMBLINE_GAP_US"};
enum { REPORT = 3, VALUES };

static char complaint[256];

/* Digits with at most one point among them: the same in every locale, and neither sign, exponent nor 'nan'. */
static bool microseconds(const char *text, double *value)
{
    double digit = 1;
    bool point = false, any = false;
    *value = 0;
    for (; *text; text++) {
        if (*text == '.' && !point) {
            point = true;
        } else if (*text >= '0' && *text <= '9') {
            any = true;
            if (point)
                *value += (*text - '0') * (digit /= 10);
            else
                *value = *value * 10 + (*text - '0');
        } else {
            return false;
        }
    }
    return any && *value <= most;
}

static ns read_time(const char *name)
{
    double value;
    const char *text = getenv(name);
    if (!text)
        return 0;
    if (microseconds(text, &value))
        return (ns)llround(value * 1000);
    if (!*complaint)
        snprintf(complaint, sizeof complaint, "%s is '%.40s': give microseconds, a decimal number from 0 to %.0f", name,
                 text, most);
    return 0;
}

static bool read_report(void)
{
    const char *text = getenv("PLUMBLINE_LATENCY_REPORT");
    if (text && strcmp(text, "0") && strcmp(text, "1") && *text && !*complaint)
        snprintf(complaint, sizeof complaint,
                 "PLUMBLINE_LATENCY_REPORT is '%.40s': give 1 for a report at MPI_Finalize, or 0", text);
    return text && !strcmp(text, "1");
}

static _Noreturn void leave(bool speaks)
{
    if (speaks) {
        fprintf(stderr, "plumbline: %s\n", complaint);
        fflush(stderr);
    }
    PMPI_Barrier(MPI_COMM_WORLD);       /* launchers end all others when one process leaves: only after the line is out */
    PMPI_Finalize();
    _Exit(2);
}

void lat_read_settings(void)
{
    int rank, speaker;
    int64_t mine[VALUES], minimum[VALUES], maximum[VALUES];
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < REPORT; i++)
        mine[i] = read_time(names[i]);
    mine[REPORT] = read_report();

    int complains = *complaint ? rank : INT32_MAX;
    PMPI_Allreduce(&complains, &speaker, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (speaker != INT32_MAX)
        leave(speaker == rank);

    /* Launchers do not pass all variables to all nodes. */
    PMPI_Allreduce(mine, minimum, VALUES, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
    PMPI_Allreduce(mine, maximum, VALUES, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < REPORT; i++)
        if (minimum[i] != maximum[i]) {
            snprintf(complaint, sizeof complaint, "%s is %g on one rank and %g on another: let the launcher pass it to all",
                     names[i], minimum[i] / 1e3, maximum[i] / 1e3);
            leave(rank == 0);
        }
    lat_set.latency = mine[0];
    lat_set.overhead = mine[1];
    lat_set.gap = mine[2];
    lat_set.report = maximum[REPORT];
    lat_set.stamped = lat_set.shadowed = lat_set.latency > 0 || lat_set.gap > 0;
}

_Noreturn void lat_fail(const char *format, ...)
{
    va_list arguments;
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank > 0)
        sleep(2);       /* mostly all ranks fail: the first one says it and ends the others meanwhile */
    fputs("plumbline: ", stderr);
    if (rank > 0)
        fprintf(stderr, "rank %d: ", rank);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    fflush(stderr);
    usleep(500000);     /* launchers drop what they have not read yet of a process that aborts */
    PMPI_Abort(MPI_COMM_WORLD, 2);
    _Exit(2);
}

void *lat_allocate(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p)
        lat_fail("libplumbline_latency has no memory for %zu bytes", bytes);
    return p;
}
