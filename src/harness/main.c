#include "internal.h"

int pl_main(int argc, char **argv, const pl_kernel *kernel)
{
    static pl_options options;
    options = pl_parse(argc, argv, kernel);
    pl_markers_open();
    pl_prepare(kernel, &options);
    if (pl_processes.rank == 0)
        pl_write_machine();
    const pl_lost_time before = pl_lost_so_far(&options);
    const int wrong = pl_measure(kernel, &options);
    pl_write_lost(&before, &options);
    pl_markers_close();
    return wrong;
}
