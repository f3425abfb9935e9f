#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"
#include "runtime.h"

enum { HOST = 256 };

typedef struct {
    char host[HOST], cpus[HOST];    /* cpus: that it may use, such as 0-3,8; cut off where it is longer */
    int pid;
} process_place;
static process_place *place;        /* of each process; on rank 0 */

static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

/* MPI_MAX does not say what becomes of a NaN. */
static double reduce_max(double x)
{
    double both[2] = {isnan(x) ? INFINITY : x, isnan(x)}, of_all[2];
    MPI_Allreduce(both, of_all, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return of_all[1] > 0 ? NAN : of_all[0];
}

static double reduce_sum(double x)
{
    double of_all;
    MPI_Allreduce(&x, &of_all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return of_all;
}

static void allgather(int own, int *all) { MPI_Allgather(&own, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD); }

/* MPICH 4.0 over UCX's TCP now and then never comes back from MPI_Finalize: all has been written by then, and nothing is
 * gained by waiting for the job's time limit. */
enum { PATIENCE = 30 };     /* seconds */

static volatile sig_atomic_t code;     /* what the program has made of its run */

static void leave(int number)
{
    static const char told[] = "plumbline: MPI_Finalize has not returned after 30 s: the process ends without it\n";
    if (write(STDERR_FILENO, told, sizeof told - 1) < 0)
        _exit(1);
    _exit(code);
}

/* MPI_Finalize in the end, but not from a process that has failed: it would wait for the others. */
static void finish(void)
{
    int begun, done;
    signal(SIGALRM, leave);
    alarm(PATIENCE);
    MPI_Initialized(&begun);
    MPI_Finalized(&done);
    if (begun && !done)
        MPI_Finalize();
}

static void stop(int number)
{
    code = number;
    fflush(stderr);
    usleep(500000);     /* launchers drop what they have not read yet of a process that aborts */
    MPI_Abort(MPI_COMM_WORLD, number);
    _Exit(number);
}

static void write_places(void)
{
    fputs(", \"processes\": [", stdout);
    for (int rank = 0; rank < pl_processes.ranks; rank++) {
        printf("%s{\"host\": ", rank ? ", " : "");
        pl_write_text(stdout, place[rank].host);
        printf(", \"pid\": %d, \"cpus\": ", place[rank].pid);
        pl_write_text(stdout, place[rank].cpus);
        putchar('}');
    }
    putchar(']');
}

/* By the hosts' names: MPI_COMM_TYPE_SHARED leaves out what the MPI will not use (MPICH with MPIR_CVAR_NOLOCAL), but caches and
 * memory are shared all the same. */
static void look_at_node(void)
{
    char own[HOST] = "", (*const all)[HOST] = pl_allocate((size_t)pl_processes.ranks * HOST, "the names of the nodes");
    gethostname(own, sizeof own - 1);
    MPI_Allgather(own, HOST, MPI_CHAR, all, HOST, MPI_CHAR, MPI_COMM_WORLD);
    pl_processes.on_node = pl_processes.at_node = 0;
    for (int rank = pl_processes.ranks - 1; rank >= 0; rank--)
        if (!strcmp(all[rank], own)) {
            pl_processes.on_node++;
            pl_processes.at_node += rank < pl_processes.rank;
            pl_processes.node = rank;
        }
    free(all);
}

/* A page of this node, made by its first process, gone with the last: not the MPI's, which gives none over TCP (Open MPI
 * without its osc/sm).  NULL on all of them where one cannot have it, as in containers of their own. */
static void *share(size_t bytes)
{
    char own[HOST] = "", (*const all)[HOST] = pl_allocate((size_t)pl_processes.ranks * HOST, "the names of the nodes' memory");
    const bool first = pl_processes.rank == pl_processes.node;
    int file = -1;
    if (first) {
        snprintf(own, sizeof own, "/plumbline-%ld-%.0f", (long)getpid(), 1e9 * pl_now());
        file = shm_open(own, O_CREAT | O_EXCL | O_RDWR, 0600);
        if (file >= 0 && ftruncate(file, (off_t)bytes))
            bytes = 0;
    }
    MPI_Allgather(own, HOST, MPI_CHAR, all, HOST, MPI_CHAR, MPI_COMM_WORLD);
    if (!first)
        file = shm_open(all[pl_processes.node], O_RDWR, 0);
    void *const memory = file >= 0 && bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    const bool lacking = reduce_max(memory == MAP_FAILED) > 0;
    if (file >= 0)
        close(file);
    if (first)
        shm_unlink(own);
    free(all);
    return lacking ? NULL : memory;
}

/* First line of what the library calls itself, as far as it says which it is; some go on with the whole configuration. */
static const char *library(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING + 1];
    int length;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = 0;
    for (char *p = text; *p; p++)
        if (*p == '\t')
            *p = ' ';
    return text;
}

/* The host's own name: SLURMD_NODENAME is the first node's on all of them where a launcher hands on its variables (MPICH's and
 * Intel MPI's Hydra do). */
static void gather_places(void)
{
    process_place own = {.pid = getpid()};
    gethostname(own.host, sizeof own.host - 1);
    (void)pl_field_of("/proc/self/status", "Cpus_allowed_list", own.cpus, sizeof own.cpus);
    if (pl_processes.rank == 0)
        place = pl_allocate((size_t)pl_processes.ranks * sizeof *place, "the places of the processes");
    MPI_Gather(&own, sizeof own, MPI_BYTE, place, sizeof own, MPI_BYTE, 0, MPI_COMM_WORLD);
}

int pl_mpi_main(int argc, char **argv, const pl_kernel *kernel)
{
    MPI_Init(&argc, &argv);
    atexit(finish);
    MPI_Comm_rank(MPI_COMM_WORLD, &pl_processes.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &pl_processes.ranks);
    look_at_node();
    pl_processes.share = share;
    pl_processes.library = library();
    pl_processes.barrier = barrier;
    pl_processes.reduce_max = reduce_max;
    pl_processes.reduce_sum = reduce_sum;
    pl_processes.allgather = allgather;
    pl_processes.write_places = write_places;
    pl_processes.stop = stop;
    gather_places();
    return code = pl_main(argc, argv, kernel);
}

int pl_working(long given) { return given ? (int)given : pl_processes.ranks; }

bool pl_works(long given) { return pl_processes.rank < pl_working(given); }

void pl_check_working(long given)
{
    if (given > pl_processes.ranks)
        pl_fail("--working %ld: there are %d processes: start more, or let fewer work", given, pl_processes.ranks);
}
