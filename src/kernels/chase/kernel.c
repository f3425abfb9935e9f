/* Pointer chase: every load needs the result of the one before, so its time is the load-to-use latency of wherever the
 * line is found.
 *
 * The order is random, so that no prefetcher guesses it, and one single cycle, so that every line is visited once
 * before any is visited again.  With `dense` the nodes are the lines of one stretch of memory; with `strided` they are
 * --stride bytes apart.  As many lines fill the caches alike, so the difference of the two is the address translation's:
 * the probe of stride and size of Saavedra and Smith (IEEE Trans. Computers 44 (1995) 1223), with a random order and
 * paired. */
#include "kernel.h"

void *chase_follow(void *node, size_t loads)
{
    for (size_t i = 0; i < loads; i++)
        node = *(void **)node;
    return node;
}

size_t chase_dense(size_t i, size_t stride) { return i * PL_LINE; }

/* The place of a line within its stride moves on from node to node: by a line, so that the lines spread over the sets of
 * the first-level cache; by one more every 16, so that those 4096 bytes apart do over the second level's; and by 4096
 * bytes, so that the parts of larger pages do over the sets of a TLB that holds translations of 4 KiB (as nested paging
 * may make them).  Else the probe would see too few ways instead of too few entries. */
size_t chase_strided(size_t i, size_t stride)
{
    return i * stride + (i * (4096 + PL_LINE) + i / 16 * PL_LINE) % stride;
}

/* xorshift64* (Vigna, ACM Trans. Math. Softw. 42 (2016) 30): the same order in every run. */
static uint64_t random_below(uint64_t *state, uint64_t bound)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return ((*state * 0x2545F4914F6CDD1Du) >> 32) * bound >> 32;
}

/* Sattolo, Inf. Process. Lett. 22 (1986) 315: Fisher and Yates' shuffle that never leaves an item in place gives a
 * permutation of one single cycle, each with the same probability. */
void chase_cycle(size_t n, uint32_t *next)
{
    uint64_t state = 20021995;
    for (size_t i = 0; i < n; i++)
        next[i] = (uint32_t)i;
    for (size_t i = n; i-- > 1;) {
        const size_t j = random_below(&state, i);
        const uint32_t other = next[j];
        next[j] = next[i];
        next[i] = other;
    }
}
