/* How many threads may call an OpenBLAS at once. */
#ifndef PLUMBLINE_OPENBLAS_H
#define PLUMBLINE_OPENBLAS_H

#include <limits.h>
#include <stdlib.h>
#include <string.h>

char *openblas_get_config(void) __attribute__((weak));
int openblas_get_parallel(void) __attribute__((weak));

/* One without threads hands out its buffers without a lock: two calls at once may get the same one, and did.  One with threads has
 * 50 buffers, or two for each thread that it was built for (NUM_BUFFERS in its common.h); beyond them one with OpenMP has no lock, either.
 * Of another library, as many as there are. */
static inline int openblas_calls_at_once(void)
{
    const char *const built_for = openblas_get_config ? strstr(openblas_get_config(), "MAX_THREADS=") : NULL;
    if (openblas_get_parallel && openblas_get_parallel() == 0)
        return 1;
    if (!built_for)
        return INT_MAX;
    const int threads = atoi(strchr(built_for, '=') + 1);
    return threads > 25 ? 2 * threads : 50;
}
#endif
