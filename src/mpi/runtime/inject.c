#define _GNU_SOURCE
#include "inject.h"

#include <dlfcn.h>

#include "plumbline.h"

typedef int setter(double us);

bool pl_inject_given;

static setter *library(void)
{
    static setter *found;
    static bool looked;
    if (!looked)
        *(void **)&found = dlsym(RTLD_DEFAULT, "plumbline_latency_set");
    looked = true;
    return found;
}

void pl_inject_check(long us)
{
    if (us > 0 && !library())
        pl_fail("--latency %ld: libplumbline_latency is not loaded: start with LD_PRELOAD=.../libplumbline_latency.so", us);
    if (us > 0 && library()((double)us))
        pl_fail("--latency %ld: libplumbline_latency adds nothing: set PLUMBLINE_LATENCY_US above 0 for the begin", us);
}

void pl_inject(long us)
{
    if (pl_inject_given && library())
        library()((double)us);      /* without PLUMBLINE_LATENCY_US it refuses 0 too, and adds nothing */
}
