#include "internal.h"

typedef struct { const pl_kernel *kernel; const pl_options *options; } program;

static int measure(void *argument)
{
    const program *p = argument;
    pl_prepare(p->kernel, p->options);
    pl_probes_open(p->options, pl_most_threads(p->options));
    if (pl_processes.rank == 0)
        pl_write_machine();
    const pl_contention before = pl_contention_so_far(p->options);
    const int wrong = pl_measure(p->kernel, p->options);
    pl_write_contention(&before, p->options);
    return wrong;
}

int pl_main(int argc, char **argv, const pl_kernel *kernel)
{
    static pl_options options;
    options = pl_parse(argc, argv, kernel);
    pl_markers_open();
    bool forks = false;
    for (int i = 0; i < options.variants.count; i++)
        forks |= options.variants.value[i]->forks;
    const int wrong = (forks ? pl_with_regions : pl_with_team)(pl_most_threads(&options), measure, &(program){kernel, &options});
    pl_markers_close();
    return wrong;
}
