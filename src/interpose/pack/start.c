/* From the loading of the library to MPI_Finalize. */
#include "pack.h"

__attribute__((constructor)) static void same_mpi(void) { interpose_check_family("libplumbline_pack"); }

/* --- begin and end --------------------------------------------------------------------------------------------------- */

static int begun(int error)
{
    int provided;
    if (error != MPI_SUCCESS)
        return error;
    PMPI_Query_thread(&provided);
    pack_threaded = provided == MPI_THREAD_MULTIPLE;
    pack_types_start();
    pack_active = true;
    return error;
}

int MPI_Init(int *argc, char ***argv)
{
    pack_settings_read();
    return begun(PMPI_Init(argc, argv));
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    pack_settings_read();
    return begun(PMPI_Init_thread(argc, argv, required, provided));
}

int MPI_Finalize(void)
{
    if (!pack_active)
        return PMPI_Finalize();
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pack_orphans(true);
    pack_active = false;
    if (pack_set.report)
        pack_report(rank);
    const int error = PMPI_Finalize();
    pack_types_stop();
    pack_pool_stop();
    return error;
}
