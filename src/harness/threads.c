/* The team of threads.
 *
 * One team of the largest size asked for lives as long as the program, in one parallel region: likwid-pin gives a CPU to
 * each thread that is created, once.  The first thread runs the program, and the others serve it.  Between two pieces of
 * work those that had a part in the last one spin, since a core that sleeps may wake elsewhere (a hypervisor moves it) or at
 * another clock; after a while they sleep all the same.  Those that have no part sleep at once, whatever the OpenMP
 * runtime does with threads that wait: a case of one thread is not taken beside busy cores. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

#ifdef _OPENMP
#include <omp.h>

const char *pl_threading(void) { return "openmp"; }

/* What a thread is told, by a number that is new each time. */
enum { WORK = 1, PARK = 2, LEAVE = 3, KINDS = 4 };
typedef struct { alignas(128) atomic_uint order; atomic_bool asleep; } mailbox;

static struct {
    int size, active;                   /* threads in all, and of the work at hand */
    unsigned number;
    void (*work)(int, void *);
    void *argument;
    mailbox *box;
    bool regions;                       /* no team that serves: each piece of work is a parallel region */
} team = {.size = 1, .active = 1};
static alignas(128) atomic_int working;
static alignas(128) atomic_int arrived;
static alignas(128) atomic_int generation;

static const double patience = 0.02;    /* seconds that a thread spins for the next work */
enum { BETWEEN_LOOKS = 1 << 12, BUSY = 100000 };     /* spins; beyond BUSY somebody else may need this CPU */

static void spin(long *spins)
{
    if (++*spins > BUSY)
        sched_yield();
}

static void sleep_until_told(mailbox *box, unsigned last)
{
    atomic_store(&box->asleep, true);
    while (atomic_load(&box->order) == last)
        syscall(SYS_futex, &box->order, FUTEX_WAIT_PRIVATE, last, NULL, NULL, 0);
    atomic_store(&box->asleep, false);
}

static unsigned next_order(mailbox *box, unsigned last)
{
    double begin = 0;
    for (long spins = 0; last % KINDS == WORK && atomic_load_explicit(&box->order, memory_order_acquire) == last; spin(&spins))
        if (spins % BETWEEN_LOOKS == 0) {
            begin = begin > 0 ? begin : pl_now();
            if (pl_now() - begin > patience)
                break;
        }
    if (atomic_load(&box->order) == last)
        sleep_until_told(box, last);
    return atomic_load(&box->order);
}

static void serve(int thread)
{
    mailbox *const box = &team.box[thread];
    for (unsigned order = 0; (order = next_order(box, order)) % KINDS != LEAVE;)
        if (order % KINDS == WORK) {
            team.work(thread, team.argument);
            atomic_fetch_sub(&working, 1);
        }
}

static void tell(int thread, unsigned kind)
{
    mailbox *const box = &team.box[thread];
    atomic_store(&box->order, KINDS * team.number + kind);
    if (atomic_load(&box->asleep))
        syscall(SYS_futex, &box->order, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Those that are not needed are asleep before the work begins. */
static void park(int first)
{
    for (int thread = first; thread < team.size; thread++)
        if (!atomic_load(&team.box[thread].asleep))
            tell(thread, PARK);
    for (int thread = first; thread < team.size; thread++)
        for (long spins = 0; !atomic_load(&team.box[thread].asleep); spin(&spins))
            ;
}

void pl_team(int threads, void (*work)(int, void *), void *argument)
{
    team.number++;
    team.active = threads;
    if (team.regions) {
#pragma omp parallel num_threads(threads)
        work(omp_get_thread_num(), argument);
        return;
    }
    team.work = work;
    team.argument = argument;
    atomic_store(&working, threads - 1);
    park(threads);
    for (int thread = 1; thread < threads; thread++)
        tell(thread, WORK);
    work(0, argument);
    for (long spins = 0; atomic_load_explicit(&working, memory_order_acquire) > 0; spin(&spins))
        ;
}

static void check_given(int size, int got)
{
    if (got != size)
        pl_fail("--threads %d: OpenMP gave %d: unset OMP_THREAD_LIMIT, or ask for fewer", size, got);
}

int pl_with_team(int size, int (*program)(void *), void *argument)
{
    int got = 0, code = 0;
    team.size = size;
    team.box = aligned_alloc(alignof(mailbox), (size_t)size * sizeof *team.box);
    if (!team.box)
        pl_fail("no memory for a team of %d threads", size);
    memset(team.box, 0, (size_t)size * sizeof *team.box);
    omp_set_dynamic(0);     /* OMP_DYNAMIC would give fewer threads on a busy node */
#pragma omp parallel num_threads(size)
    {
#pragma omp single
        got = omp_get_num_threads();
        if (got == size && omp_get_thread_num() > 0)
            serve(omp_get_thread_num());
        else if (got == size) {
            code = program(argument);
            team.number++;
            for (int thread = 1; thread < size; thread++)
                tell(thread, LEAVE);
        }
    }
    check_given(size, got);
    free(team.box);
    return code;
}

int pl_with_regions(int size, int (*program)(void *), void *argument)
{
    int got = 0;
    team.size = size;
    team.regions = true;
    omp_set_dynamic(0);
#pragma omp parallel num_threads(size)
#pragma omp single
    got = omp_get_num_threads();
    check_given(size, got);
    return program(argument);
}

bool pl_in_regions(void) { return team.regions; }

void pl_set_region_threads(int threads) { omp_set_num_threads(threads); }

/* Spinning, so that all start within a fraction of a microsecond; it yields where threads share a CPU. */
void pl_barrier(void)
{
    const int now = atomic_load(&generation);
    if (atomic_fetch_add(&arrived, 1) + 1 == team.active) {
        atomic_store(&arrived, 0);
        atomic_fetch_add(&generation, 1);
        return;
    }
    for (long spins = 0; atomic_load_explicit(&generation, memory_order_acquire) == now; spin(&spins))
        ;
}

/* With OMP_PROC_BIND the runtime binds the first thread before main begins. */
pl_cpus pl_openmp_places(void)
{
    pl_cpus all = {0, NULL};
    if (omp_get_proc_bind() == omp_proc_bind_false)
        return all;
    for (int place = 0; place < omp_get_num_places(); place++) {
        const int count = omp_get_place_num_procs(place);
        all.cpu = pl_grow(all.cpu, (size_t)(all.count + count) * sizeof *all.cpu, "the list of CPUs");
        omp_get_place_proc_ids(place, all.cpu + all.count);
        all.count += count;
    }
    return all;
}

#else

pl_cpus pl_openmp_places(void) { return (pl_cpus){0, NULL}; }
const char *pl_threading(void) { return "serial"; }
int pl_with_team(int size, int (*program)(void *), void *argument) { return program(argument); }
int pl_with_regions(int size, int (*program)(void *), void *argument) { return pl_with_team(size, program, argument); }
bool pl_in_regions(void) { return false; }
void pl_set_region_threads(int threads) {}
void pl_team(int threads, void (*work)(int, void *), void *argument) { work(0, argument); }
void pl_barrier(void) {}

#endif

static void note_cpu(int thread, void *cpus) { ((int *)cpus)[thread] = sched_getcpu(); }

void pl_where_threads_run(int threads, int *cpus) { pl_team(threads, note_cpu, cpus); }
