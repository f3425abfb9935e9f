/* Messages: each thread writes some cache lines that its partner then reads, and compares with what must be there.  All pairs have their turn,
 * all threads at once (tournament.h). */
#include "burn.h"
#include "tournament.h"

enum { WORDS = 1024 };      /* 8 KiB */
static const uint64_t step = 0x9E3779B97F4A7C15u;

void burn_message_create(burn_thread *t)
{
    for (int i = 0; i < 2; i++) {
        t->box[i] = pl_map(WORDS * sizeof *t->box[i], PL_BASE);
        if (!t->box[i])
            pl_fail("no memory for the messages of thread %d: close other programs", t->thread);
        memset(t->box[i], 0, WORDS * sizeof *t->box[i]);
    }
}

static uint64_t first_of(int thread, long number) { return pl_random_bits((uint64_t)number << 16 ^ (uint64_t)thread); }

static void look(burn_thread *t, const burn_thread *other, const uint64_t *box, uint64_t first, uint64_t bits)
{
    const long before = t->errors.count;
    uint64_t value = first;
    for (size_t i = 0; i < WORDS; i++, value += step)
        if (box[i] != value)
            burn_differs(&t->errors, "message", box, i, value, 0, other->thread);
    if (t->errors.count == before)
        burn_differs(&t->errors, "message", box, 0, first, bits, other->thread);
}

/* Two boxes by turns: what is read of one has been read when all have written the other.  The last step is said before its barrier, so that
 * all threads have the same. */
void burn_message(burn_state *state, burn_thread *t)
{
    const int threads = state->options->threads, rounds = pl_tournament_rounds(threads);
    for (long number = 0;; number++) {
        uint64_t *const own = t->box[number % 2], value = first_of(t->thread, number), bits = 0;
        for (size_t i = 0; i < WORDS; i++, value += step)
            own[i] = value;
        const int partner = pl_tournament_partner(threads, t->thread, (int)(number % rounds));
        if (partner >= 0)       /* who reads it */
            burn_flip(t, own, WORDS * sizeof *own);
        if (t->thread == 0 && !burn_goes_on(state))
            atomic_store(&state->last_step, number);
        pl_barrier();
        if (partner >= 0) {
            const uint64_t *const box = state->thread[partner]->box[number % 2];
            value = first_of(partner, number);
            for (size_t i = 0; i < WORDS; i++, value += step)
                bits |= box[i] ^ value;
            if (bits)
                look(t, state->thread[partner], box, first_of(partner, number), bits);
            t->work += WORDS * sizeof *box;
        }
        if (atomic_load(&state->last_step) == number)
            break;
    }
    pl_barrier();       /* nobody writes a box of this phase any more */
}
