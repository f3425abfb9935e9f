/* PingPong between two processes (hager2007, section 3.2): the exchanges.  All begin with the lower rank of a pair. */
#ifndef PINGPONG_EXCHANGES_H
#define PINGPONG_EXCHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    void *out, *in;         /* what is sent, what is received into; page-aligned */
    void *back;             /* what swapped's second exchange receives into: out, but for the pass that is verified */
    size_t bytes;
    int rank, partner;
    bool first;             /* this process sends first */
    uint64_t written;       /* what touched has written last */
    uint64_t sum;           /* of what touched has read */
} pingpong_ends;

typedef void pingpong_exchange(pingpong_ends *);     /* a pass */
pingpong_exchange pingpong_standard, pingpong_swapped, pingpong_touched;

/* What stands at a word of a message: the sender, and how often the buffer has been written. */
static inline uint64_t pingpong_word(int sender, uint64_t written, size_t i)
{
    return ((uint64_t)(unsigned)sender << 48) + (written << 32) + i;
}
void pingpong_write(void *buffer, size_t bytes, int sender, uint64_t written);

/* How many bytes of a message are not what this sender has written. */
double pingpong_wrong_bytes(const void *buffer, size_t bytes, int sender, uint64_t written);

#endif
