/* libplumbline_latency's own function, for programs that compare latencies by turns.  Everything else it does by standing
 * before MPI's. */
#ifndef PLUMBLINE_LATENCY_SWITCH_H
#define PLUMBLINE_LATENCY_SWITCH_H

/* L for all messages from now on, in microseconds; 0: they go as in a program without the library, but for a branch or two a
 * call.  On all ranks with the same value, and with no message under way: between two barriers, say, and with no rooted
 * collective next to them.  0: done; -1: us is negative or beyond a second, or the program was started without
 * PLUMBLINE_LATENCY_US (or _GAP_US) above 0. */
int plumbline_latency_set(double us);

#endif
