/* What all phases share: whether there is time left, the bit of the self-test, and the words that differ. */
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "burn.h"

atomic_int burn_signal;

bool burn_goes_on(const burn_state *state)
{
    return !atomic_load_explicit(&burn_signal, memory_order_relaxed) && pl_now() < state->until;
}

/* Bit 4 of the third byte of a word in the middle: of a number's lower half. */
void burn_flip(burn_thread *t, void *buffer, size_t bytes)
{
    if (t->flip)
        ((unsigned char *)buffer)[bytes / 16 * 8 + 2] ^= 1 << 4;
    t->flip = false;
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

/* Bits of numbers of any type. */
typedef uint64_t __attribute__((may_alias)) word;

/* The word as the memory has it, not a cache. */
static uint64_t from_memory(const word *at)
{
#if defined(__x86_64__)
    _mm_clflush(at);
    _mm_mfence();
#endif
    return *(const volatile word *)at;
}

void burn_differs(burn_errors *errors, const char *buffer, const void *begin, size_t i, uint64_t expected, uint64_t bits, int from)
{
    const word *const at = (const word *)begin + i;
    const uint64_t seen = *(const volatile word *)at;
    if (errors->count++ >= BURN_TOLD)
        return;
    errors->told[errors->count - 1] = (burn_error){
        .buffer = buffer, .address = at, .offset = i * sizeof *at, .expected = expected, .seen = seen, .lost = seen == expected,
        .bits = seen == expected ? bits : seen ^ expected, .again = from_memory(at), .from = from};
}

bool burn_compare(burn_errors *errors, const char *buffer, const void *found, const void *right, size_t words)
{
    const word *const a = found, *const b = right;
    const long before = errors->count;
    uint64_t bits = 0;
    for (size_t i = 0; i < words; i++)
        bits |= a[i] ^ b[i];
    if (!bits)
        return true;
    for (size_t i = 0; i < words; i++)
        if (a[i] != b[i])
            burn_differs(errors, buffer, found, i, b[i], 0, -1);
    if (errors->count == before)
        burn_differs(errors, buffer, found, 0, b[0], bits, -1);
    return false;
}
