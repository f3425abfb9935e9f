/* The team of threads.
 *
 * One team of the largest size asked for lives as long as the program; a case with fewer threads uses the first of
 * them.  Runtimes that end and create threads between teams of different sizes would undo the pinning: likwid-pin gives
 * a CPU to each thread that is created, once. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "internal.h"

#ifdef _OPENMP
#include <omp.h>

const char *pl_threading(void) { return "openmp"; }

static int team_size = 1;
static int active;                      /* threads of the team that work */
static atomic_int arrived, generation;

void pl_team(int threads, void (*work)(int, void *), void *argument)
{
    int got = 0;
    active = threads;
#pragma omp parallel num_threads(team_size)
    {
#pragma omp single
        got = omp_get_num_threads();
        if (got == team_size && omp_get_thread_num() < threads)
            work(omp_get_thread_num(), argument);
    }
    if (got != team_size)
        pl_fail("--threads %d: OpenMP gave %d: unset OMP_THREAD_LIMIT, or ask for fewer", team_size, got);
}

static void nothing(int thread, void *argument) { (void)thread, (void)argument; }

void pl_team_open(int size)
{
    team_size = size;
    omp_set_dynamic(0);     /* OMP_DYNAMIC would give fewer threads on a busy node */
    pl_team(size, nothing, NULL);
}

/* Spinning, so that all start within a fraction of a microsecond; it yields where threads share a CPU. */
void pl_meet(void)
{
    const int now = atomic_load(&generation);
    if (atomic_fetch_add(&arrived, 1) + 1 == active) {
        atomic_store(&arrived, 0);
        atomic_fetch_add(&generation, 1);
        return;
    }
    for (long spins = 0; atomic_load_explicit(&generation, memory_order_acquire) == now; spins++)
        if (spins > 100000)
            sched_yield();
}

/* With OMP_PROC_BIND the runtime binds the first thread before main begins. */
pl_cpus pl_openmp_places(void)
{
    pl_cpus all = {0, NULL};
    if (omp_get_proc_bind() == omp_proc_bind_false)
        return all;
    for (int place = 0; place < omp_get_num_places(); place++) {
        const int count = omp_get_place_num_procs(place);
        all.cpu = realloc(all.cpu, (size_t)(all.count + count) * sizeof *all.cpu);
        if (!all.cpu)
            pl_fail("no memory for the list of CPUs");
        omp_get_place_proc_ids(place, all.cpu + all.count);
        all.count += count;
    }
    return all;
}

#else

pl_cpus pl_openmp_places(void) { return (pl_cpus){0, NULL}; }
const char *pl_threading(void) { return "serial"; }
void pl_team_open(int size) { (void)size; }
void pl_team(int threads, void (*work)(int, void *), void *argument) { (void)threads; work(0, argument); }
void pl_meet(void) {}

#endif

static void note_cpu(int thread, void *cpus) { ((int *)cpus)[thread] = sched_getcpu(); }

void pl_where_threads_run(int threads, int *cpus) { pl_team(threads, note_cpu, cpus); }
