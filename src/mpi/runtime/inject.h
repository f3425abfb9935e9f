/* Latency that libplumbline_latency adds, changed from case to case of one process: what is compared runs by turns. */
#ifndef PLUMBLINE_INJECT_H
#define PLUMBLINE_INJECT_H

/* For pl_kernel.parameters, and what its check() and the begin of its run() do with the value. */
#define PL_INJECT_PARAMETER \
    {"latency", 0, 1, "us that libplumbline_latency adds to each message", .most = 1000000, .from_zero = true}
void pl_inject_check(long us);  /* fails where us > 0 and the library is not loaded */
void pl_inject(long us);

#endif
