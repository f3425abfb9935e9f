/* Latency that libplumbline_latency adds, changed from case to case of one process: what is compared runs by turns. */
#ifndef PLUMBLINE_INJECT_H
#define PLUMBLINE_INJECT_H

#include <stdbool.h>

/* For pl_kernel.parameters, and what its check() and the begin of its run() do with the value. */
#define PL_INJECT_PARAMETER                                                                                                   \
    {"latency", 0, 1, "us that libplumbline_latency adds to each message (default: what its variables say)", .most = 1000000, \
     .from_zero = true, .given = &pl_inject_given}
extern bool pl_inject_given;    /* --latency stands in the command: else the library keeps what its variables say */
void pl_inject_check(long us);  /* fails where us > 0 and the library is not loaded */
void pl_inject(long us);

#endif
