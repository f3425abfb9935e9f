/* Loaded in front of an MPI: a process that waits sleeps 50 us at a time, where MPICH 4 on UCX takes all of a CPU, and Open MPI gives way to
   processes that wait as it does: of Linux that is a CPU for a moment, and nobody's that computes. */
#include <dlfcn.h>
#include <time.h>

static void rest(void)
{
    nanosleep(&(struct timespec){0, 1}, NULL);
}

unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*progress)(void *);
    static _Thread_local int in_vain;
    if (!progress)
        progress = (unsigned (*)(void *))dlsym(dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD), "ucp_worker_progress");
    const unsigned found = progress(worker);
    in_vain = found ? 0 : in_vain + 1;
    if (in_vain > 20)
        rest();
    return found;
}

/* What Open MPI calls after each look that found nothing (mpi_yield_when_idle). */
int sched_yield(void)
{
    rest();
    return 0;
}
