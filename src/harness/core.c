/* What a core does in a cycle, and how many cycles it has: without counters, from chains of additions; and how fast it divides.
 *
 * Registers only: nothing is loaded, and no cache is touched.  The addend is a register, not a constant: some processors
 * add small constants while they rename (Golden Cove), several in a cycle. */
#include <math.h>

#include "internal.h"

#if defined(__x86_64__)
#define ADD(x) "add %[one], %[" #x "]\n\t"
#define DIVIDE "mov %[number], %%eax\n\txor %%edx, %%edx\n\tdivl %[by]\n\t"
#define QUOTIENT "eax", "edx"
#elif defined(__aarch64__)
#define ADD(x) "add %[" #x "], %[" #x "], %[one]\n\t"
#define DIVIDE "udiv w9, %w[number], %w[by]\n\t"
#define QUOTIENT "x9"
#endif

enum { BLOCK = 64, PARTS = 3 };     /* operations without a branch; readings */
static const double fast = 4e9, fast_division = 0.6e9;      /* operations per second that no part is too short for */

static long blocks_in(double seconds, double rate) { return 1 + (long)(seconds * rate / (PARTS * BLOCK)); }

static double middle(const double rate[PARTS])
{
    const double least = fmin(rate[0], rate[1]), most = fmax(rate[0], rate[1]);
    return fmax(least, fmin(most, rate[2]));
}

/* Additions per second of one chain: each needs the result of the one before.  The best of the readings, since what
 * disturbs makes them slower. */
double pl_core_clock(double seconds)
{
#ifdef ADD
    const long blocks = blocks_in(seconds, fast);
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
    return NAN;
#endif
}

/* Additions per cycle of eight chains, as many as the core has adders for: fewer where another hardware thread of this
 * core works, though a virtual machine does not see it.  The middle of three readings. */
double pl_core_additions(double seconds, double clock)
{
#ifdef ADD
    const long blocks = blocks_in(seconds, 4 * fast);
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
    return middle(rate) / clock;
#else
    return NAN;
#endif
}

/* Divisions per second of 32-bit integers that need nothing of each other, the middle of three readings.  A core has one divider,
 * which is busy with one for several cycles: two hardware threads that both divide halve each other, and nothing else that they do does. */
double pl_core_divisions(double seconds)
{
#ifdef ADD
    const long blocks = blocks_in(seconds, fast_division);
    double rate[PARTS];
    for (int part = 0; part < PARTS; part++) {
        const double begin = pl_now();
        for (long i = 0; i < blocks; i++)
            __asm__ volatile(".rept 64\n\t" DIVIDE ".endr" : : [number] "r"(1234567890), [by] "r"(12347) : QUOTIENT, "cc");
        rate[part] = (double)(blocks * BLOCK) / (pl_now() - begin);
    }
    return middle(rate);
#else
    return NAN;
#endif
}
