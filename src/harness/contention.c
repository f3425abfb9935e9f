/* What the system took of the program's time: read when it begins and when it ends; in between of regions alone, outside of what is timed. */
#define _GNU_SOURCE
#include <dirent.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

/* Seconds that the hypervisor gave to others while these CPUs had something to run. */
static double stolen(const int *cpus, int count)
{
    FILE *f = fopen("/proc/stat", "r");
    char line[1024];
    double ticks = 0;
    bool found = false;
    while (f && fgets(line, sizeof line, f)) {
        int cpu;
        double steal;
        if (sscanf(line, "cpu%d %*f %*f %*f %*f %*f %*f %*f %lf", &cpu, &steal) == 2)
            for (int i = 0; i < count; i++)
                if (cpus[i] == cpu) {
                    ticks += steal;
                    found = true;
                }
    }
    if (f)
        fclose(f);
    return found ? ticks / (double)sysconf(_SC_CLK_TCK) : NAN;
}

/* Seconds that the threads were ready to run and did not: a throttled cgroup lets them wait, and so do others.  `most`: of the one that
 * waited the longest since the first call; all of a team wait for it. */
static double waited(double *most)
{
    static struct { long id; double waited; } first[4096];
    static int known = -1;
    const bool begins = known < 0;
    DIR *tasks = opendir("/proc/self/task");
    double sum = 0;
    bool found = false;
    *most = 0;
    known = begins ? 0 : known;
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        char path[512], line[128];
        double nanoseconds;
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", task->d_name);
        if (task->d_name[0] == '.' || !pl_read_line(path, line, sizeof line))
            continue;
        if (sscanf(line, "%*f %lf", &nanoseconds) == 1) {
            const long id = atol(task->d_name);
            double own = nanoseconds / 1e9;
            sum += own;
            found = true;
            if (begins && known < (int)(sizeof first / sizeof *first)) {
                first[known].id = id;
                first[known++].waited = own;
            }
            for (int i = 0; i < known; i++)
                if (first[i].id == id)
                    own -= first[i].waited;
            *most = fmax(*most, own);
        }
    }
    if (tasks)
        closedir(tasks);
    *most = found ? *most : NAN;
    return found ? sum : NAN;
}

/* In regions the runtime may end the threads that a smaller one does not need, and what the system knows of them ends, too: it is added up for
 * each thread's number, after each sample. */
enum { MOST_NUMBERS = 4096 };
static struct { pid_t id; double last, sum; } numbered[MOST_NUMBERS];

static void note_waiting(int thread, void *unknown)
{
    char line[128];
    double nanoseconds;
    if (thread >= MOST_NUMBERS)
        return;
    if (!pl_read_line("/proc/thread-self/schedstat", line, sizeof line) || sscanf(line, "%*f %lf", &nanoseconds) != 1) {
        *(atomic_bool *)unknown = true;
        return;
    }
    const pid_t id = (pid_t)syscall(SYS_gettid);      /* for which the glibc has a function since 2.30 only */
    const double so_far = nanoseconds / 1e9;
    numbered[thread].sum += so_far - (numbered[thread].id == id ? numbered[thread].last : 0);
    numbered[thread].id = id;
    numbered[thread].last = so_far;
}

bool pl_note_waiting(int threads)
{
    atomic_bool unknown = false;
    if (pl_in_regions())
        pl_team(threads, note_waiting, &unknown);
    return !unknown;
}

static double waited_in_regions(int threads, double *most)
{
    static double first[MOST_NUMBERS];
    static bool begun;
    const bool known = pl_note_waiting(threads);
    double sum = 0;
    *most = 0;
    for (int thread = 0; thread < threads && thread < MOST_NUMBERS; thread++) {
        first[thread] = begun ? first[thread] : numbered[thread].sum;
        sum += numbered[thread].sum;
        *most = fmax(*most, numbered[thread].sum - first[thread]);
    }
    begun = true;
    *most = known ? *most : NAN;
    return known ? sum : NAN;
}

pl_contention pl_contention_so_far(const pl_options *o)
{
    const pl_cpus allowed = pl_allowed_cpus();
    const int *const cpus = o->cpus.count ? o->cpus.value : allowed.cpu;
    pl_contention found = {.elapsed = pl_now(), .throttled = pl_throttled(""), .stolen = stolen(cpus, o->cpus.count ? o->cpus.count : allowed.count)};
    found.waited = pl_in_regions() ? waited_in_regions(pl_most_threads(o), &found.waited_most) : waited(&found.waited_most);
    return found;
}

static void number(const char *name, double seconds)
{
    if (isfinite(seconds))
        printf(", \"%s\": %.6g", name, fmax(seconds, 0));
    else
        printf(", \"%s\": null", name);
}

/* Of one process: of several, on several nodes perhaps, one cannot speak for the others. */
void pl_write_contention(const pl_contention *before, const pl_options *o)
{
    const int threads = pl_most_threads(o);
    if (pl_processes.ranks > 1)
        return;
    const pl_contention after = pl_contention_so_far(o);
    printf("{\"record\": \"contention\", \"schema\": 1, \"threads\": %d", threads);
    number("elapsed", after.elapsed - before->elapsed);
    number("throttled", after.throttled - before->throttled);
    number("waited", after.waited - before->waited);
    number("waited_most", after.waited_most);
    number("stolen", after.stolen - before->stolen);
    puts("}");
}
