/* What a core does in a cycle, and how many cycles it has: without counters, from chains of additions.
 *
 * Registers only: nothing is loaded, and no cache is touched.  The addend is a register, not a constant: some processors
 * add small constants while they rename (Golden Cove), several in a cycle. */
#include <math.h>

#include "internal.h"

#if defined(__x86_64__)
#define ADD(x) "add %[one], %[" #x "]\n\t"
#elif defined(__aarch64__)
#define ADD(x) "add %[" #x "], %[" #x "], %[one]\n\t"
#endif

enum { BLOCK = 64, PARTS = 3 };     /* additions without a branch; readings */
static const double fast = 4e9;     /* additions per second that no part is too short for */

static long blocks_in(double seconds, int chains) { return 1 + (long)(seconds * fast * chains / (PARTS * BLOCK)); }

/* Additions per second of one chain: each needs the result of the one before.  The best of the readings, since what
 * disturbs makes them slower. */
double pl_core_clock(double seconds)
{
#ifdef ADD
    const long blocks = blocks_in(seconds, 1);
    double best = 0;
    for (int part = 0; part < PARTS; part++) {
        long a = part;
        const double begin = pl_now();
        for (long i = 0; i < blocks; i++)
            __asm__ volatile(".rept 64\n\t" ADD(a) ".endr" : [a] "+r"(a) : [one] "r"(1L));
        best = fmax(best, (double)(blocks * BLOCK) / (pl_now() - begin));
    }
    return best;
#else
    (void)seconds;
    return NAN;
#endif
}

/* Additions per cycle of eight chains, as many as the core has adders for: fewer where another hardware thread of this
 * core works, though a virtual machine does not see it.  The middle of three readings. */
double pl_core_additions(double seconds, double clock)
{
#ifdef ADD
    const long blocks = blocks_in(seconds, 4);
    double rate[PARTS];
    for (int part = 0; part < PARTS; part++) {
        long a = part, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
        const double begin = pl_now();
        for (long i = 0; i < blocks; i++)
            __asm__ volatile(".rept 8\n\t" ADD(a) ADD(b) ADD(c) ADD(d) ADD(e) ADD(f) ADD(g) ADD(h) ".endr"
                             : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [e] "+r"(e), [f] "+r"(f), [g] "+r"(g),
                               [h] "+r"(h) : [one] "r"(1L));
        rate[part] = (double)(blocks * BLOCK) / (pl_now() - begin);
    }
    const double least = fmin(rate[0], rate[1]), most = fmax(rate[0], rate[1]);
    return fmax(least, fmin(most, rate[2])) / clock;
#else
    (void)seconds, (void)clock;
    return NAN;
#endif
}
