#include "handover.h"

#include <math.h>
#include <stdbool.h>

#include "internal.h"

/* No pause instruction: on some processors it takes longer than a handover. */
static bool await(const pl_relay *r, uint64_t turn, double patience)
{
    enum { BETWEEN_LOOKS = 1 << 12 };
    double begin = 0;
    for (long spins = 1; atomic_load_explicit(&r->turn, memory_order_acquire) != turn; spins++) {
        if (spins % BETWEEN_LOOKS)
            continue;
        const double now = pl_now();
        if (begin == 0)
            begin = now;
        else if (now - begin > patience)
            return false;
    }
    return true;
}

double pl_hand_over(pl_relay *r, int side, uint32_t epoch, pl_relay_length length)
{
    const uint64_t first = (uint64_t)epoch << 32;
    uint64_t turn = first + (uint64_t)side;
    double least = INFINITY, begin = 0;
    if (side == 0)
        atomic_store_explicit(&r->turn, first, memory_order_release);
    for (int batch = 0; batch <= length.batches; batch++) {     /* in the first, of one handover, the two find each other */
        const int handovers = batch ? length.handovers : 1;
        for (int i = 0; i < handovers; i++, turn += 2) {
            if (!await(r, turn, length.patience))
                return NAN;
            atomic_store_explicit(&r->turn, turn + 1, memory_order_release);
        }
        const double now = pl_now(), each = (now - begin) / (2 * handovers);
        if (batch && each < least)
            least = each;
        begin = now;
    }
    return least;
}

static const uint64_t called = UINT32_MAX;      /* no handover gets that far */

#if defined(__x86_64__)
#define REST "pause"
#elif defined(__aarch64__)
#define REST "isb"
#else
#define REST ""
#endif

void pl_relay_rest(pl_relay *r, uint32_t epoch, double patience)
{
    enum { BETWEEN_LOOKS = 1 << 6 };
    const double begin = pl_now();
    for (int spins = 1; atomic_load_explicit(&r->turn, memory_order_acquire) != ((uint64_t)epoch << 32) + called; spins++) {
        if (spins % BETWEEN_LOOKS == 0 && pl_now() - begin > patience)
            return;
        __asm__ volatile(REST);
    }
}

void pl_relay_call(pl_relay *r, uint32_t epoch)
{
    atomic_store_explicit(&r->turn, ((uint64_t)epoch << 32) + called, memory_order_release);
}

int pl_relay_rounds(int members)
{
    int rounds = 0;
    while (rounds < PL_MOST_ROUNDS && 1 << rounds < members)
        rounds++;
    return rounds;
}

int pl_relay_partner(int member, int round) { return member ^ 1 << round; }
