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

/* The models of traffic count lines. */
static void check_line(const pl_options *options)
{
    const pl_caches caches = pl_caches_of(pl_allowed_cpus().cpu[0]);
    const int line = caches.count ? caches.cache[0].line : 0;
    if (options->limit && line && line != PL_LINE)
        pl_fail("--limit: L1 has lines of %d bytes here, and traffic is counted in lines of %d: measure without --limit", line, PL_LINE);
}

int pl_main(int argc, char **argv, const pl_kernel *kernel)
{
    static pl_options options;
    options = pl_parse(argc, argv, kernel);
    check_line(&options);
    pl_markers_open();
    bool forks = false;
    for (int i = 0; i < options.variants.count; i++)
        forks |= options.variants.value[i]->forks;
    const int wrong = (forks ? pl_with_regions : pl_with_team)(pl_most_threads(&options), measure, &(program){kernel, &options});
    pl_markers_close();
    return wrong;
}
