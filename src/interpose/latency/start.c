#include "latency.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "family.h"

static const char *const library = "libplumbline_latency";
static bool begun;

static int started(int error)
{
    int level;
    if (error)
        return error;
    begun = true;
    lat_read_settings();
    if (lat_set.latency + lat_set.overhead + lat_set.gap == 0)
        return error;
    PMPI_Query_thread(&level);
    lat_set.threads = level == MPI_THREAD_MULTIPLE;
    lat_comm_start();
    lat_clock_start();
    lat_set.on = true;
    return error;
}

int MPI_Init(int *argc, char ***argv)
{
    interpose_check_family(library);
    return started(PMPI_Init(argc, argv));
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    interpose_check_family(library);
    return started(PMPI_Init_thread(argc, argv, required, provided));
}

int MPI_Finalize(void)
{
    lat_report();
    if (lat_set.on) {
        lat_set.on = false;
        lat_reap(true);
        lat_outgoing_stop();
        lat_comm_stop();
        lat_clock_stop();
    }
    return PMPI_Finalize();
}

/* Whether the environment asks for anything, before MPI_Init and without judging it. */
static bool asked_for(void)
{
    static const char *const names[] = {"PLUMBLINE_LATENCY_US", "PLUMBLINE_OVERHEAD_US", "PLUMBLINE_GAP_US"};
    for (int i = 0; i < 3; i++) {
        const char *text = getenv(names[i]);
        if (text && strspn(text, "0.") != strlen(text))
            return true;
    }
    return false;
}

#if LAT_CALLS_OF_4
int MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session)
{
    if (asked_for())
        interpose_fail("%s knows no sessions (MPI_Session_init): run this program without it", library);
    return PMPI_Session_init(info, errhandler, session);
}
#endif

/* Some MPIs' Fortran calls go past the C ones: then nothing was added, and nobody may believe that it was. */
__attribute__((destructor)) static void unseen(void)
{
    int initialized = 0;
    if (begun || !asked_for())
        return;
    PMPI_Initialized(&initialized);
    if (initialized)
        interpose_fail("%s has not seen MPI_Init, so nothing was added: does this MPI's Fortran call past its C functions, or "
                       "another library in between?", library);
}
