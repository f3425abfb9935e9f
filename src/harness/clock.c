#include <time.h>

#include "internal.h"

double pl_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The step that two successive readings show, not the one that the system claims (1 ns everywhere). */
double pl_clock_resolution(void)
{
    static double step;
    if (step > 0)
        return step;
    double smallest = 1;
    for (int i = 0; i < 1000; i++) {
        const double begin = pl_now();
        double end = begin;
        while (end <= begin)
            end = pl_now();
        if (end - begin < smallest)
            smallest = end - begin;
    }
    return step = smallest;
}
