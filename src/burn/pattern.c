/* Memory and cache: words that depend on their place and generation are written, and read again when all others have been.
 *
 * A wrong bit, a line that went elsewhere, one that was never written: each is found.  Of two generations the second is the complement of the
 * first, so that every bit holds both values. */
#include "burn.h"

enum { BLOCK = 8192 };      /* words: 64 KiB, which stay in a cache between the reading and the writing */
static const uint64_t step = 0x9E3779B97F4A7C15u;       /* odd: all words of a block differ */

static uint64_t first_of(const burn_pattern *p, size_t block, uint64_t generation)
{
    return pl_random_bits(pl_random_bits(p->seed + (generation >> 1)) + block);
}

static uint64_t mask_of(uint64_t generation) { return generation & 1 ? ~(uint64_t)0 : 0; }

static void fill(uint64_t *to, uint64_t value, uint64_t mask)
{
    for (size_t i = 0; i < BLOCK; i++, value += step)
        to[i] = value ^ mask;
}

/* Bits that differ in any word. */
static uint64_t differing(const uint64_t *from, uint64_t value, uint64_t mask)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < BLOCK; i++, value += step)
        bits |= from[i] ^ value ^ mask;
    return bits;
}

static void look(const burn_pattern *p, burn_errors *errors, size_t block, uint64_t bits)
{
    const uint64_t mask = mask_of(p->generation), first = first_of(p, block, p->generation);
    const long before = errors->count;
    uint64_t value = first;
    for (size_t i = block * BLOCK; i < (block + 1) * BLOCK; i++, value += step)
        if (p->at[i] != (value ^ mask))
            burn_differs(errors, p->name, p->at, i, value ^ mask, 0, -1);
    if (errors->count == before)
        burn_differs(errors, p->name, p->at, block * BLOCK, first ^ mask, bits, -1);
}

void burn_pattern_create(burn_pattern *p, const char *name, size_t bytes, uint64_t seed)
{
    *p = (burn_pattern){.name = name, .blocks = bytes / (BLOCK * sizeof *p->at), .seed = pl_random_bits(seed)};
    p->blocks = p->blocks ? p->blocks : 1;
    p->at = pl_map(p->blocks * BLOCK * sizeof *p->at, PL_HUGE);
    if (!p->at)
        pl_fail("no memory for a %s of %zu bytes: give a smaller --memory", name, bytes);
    for (size_t block = 0; block < p->blocks; block++)
        fill(p->at + block * BLOCK, first_of(p, block, 0), 0);
}

static void sweep(burn_state *state, burn_thread *t, burn_pattern *p)
{
    do {
        uint64_t *const at = p->at + p->next * BLOCK;
        burn_flip(t, at, BLOCK * sizeof *at);
        const uint64_t bits = differing(at, first_of(p, p->next, p->generation), mask_of(p->generation));
        if (bits)
            look(p, &t->errors, p->next, bits);
        fill(at, first_of(p, p->next, p->generation + 1), mask_of(p->generation + 1));
        t->work += 2.0 * BLOCK * sizeof *at;
        if (++p->next == p->blocks) {
            p->next = 0;
            p->generation++;
        }
    } while (burn_goes_on(state));
}

void burn_memory(burn_state *state, burn_thread *t) { sweep(state, t, &t->memory); }
void burn_cache(burn_state *state, burn_thread *t) { sweep(state, t, &t->cache); }
