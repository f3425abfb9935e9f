#include "exchanges.h"

#include <mpi.h>
#include <string.h>

enum { TAG = 1 };

static void send(const pingpong_ends *e, const void *from)
{
    MPI_Send(from, (int)e->bytes, MPI_BYTE, e->partner, TAG, MPI_COMM_WORLD);
}

static void receive(const pingpong_ends *e, void *into)
{
    MPI_Recv(into, (int)e->bytes, MPI_BYTE, e->partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void exchange(const pingpong_ends *e, const void *from, void *into)
{
    if (e->first) {
        send(e, from);
        receive(e, into);
    } else {
        receive(e, into);
        send(e, from);
    }
}

/* As the Intel MPI Benchmarks do it: no processor ever writes what it sends, nor reads what it has received.  In shared
 * memory the messages may then stay in the receiver's cache. */
void pingpong_standard(pingpong_ends *e) { exchange(e, e->out, e->in); }

/* A second exchange with the two buffers changed over: each process gets back what it has sent, into where it has sent it
 * from, and so owns its cache lines again before the next pass. */
void pingpong_swapped(pingpong_ends *e)
{
    exchange(e, e->out, e->in);
    exchange(e, e->in, e->back);
}

void pingpong_write(void *buffer, size_t bytes, int sender, uint64_t written)
{
    uint64_t *const word = buffer;
    const size_t words = bytes / sizeof *word;
    for (size_t i = 0; i < words; i++)
        word[i] = pingpong_word(sender, written, i);
    const uint64_t last = pingpong_word(sender, written, words);
    memcpy(word + words, &last, bytes % sizeof *word);
}

double pingpong_wrong_bytes(const void *buffer, size_t bytes, int sender, uint64_t written)
{
    const unsigned char *const found = buffer;
    const uint64_t *const whole = buffer;
    const size_t words = bytes / sizeof *whole;
    int any = 0;
    double wrong = 0;
    for (size_t i = 0; i < words; i++)      /* compilers vectorise this */
        any |= whole[i] != pingpong_word(sender, written, i);
    for (size_t i = any ? 0 : words * sizeof *whole; i < bytes; i++) {
        const uint64_t word = pingpong_word(sender, written, i / sizeof word);
        wrong += found[i] != ((const unsigned char *)&word)[i % sizeof word];
    }
    return wrong;
}

static uint64_t read_all(const void *buffer, size_t bytes)
{
    const uint64_t *const word = buffer;
    const size_t words = bytes / sizeof *word;
    uint64_t sum = 0, last = 0;
    for (size_t i = 0; i < words; i++)
        sum += word[i];
    memcpy(&last, word + words, bytes % sizeof *word);
    return sum + last;
}

/* As a program does that computes what it sends and uses what it receives. */
void pingpong_touched(pingpong_ends *e)
{
    e->written = (e->written + 1) & 0xFFFF;
    if (e->first) {
        pingpong_write(e->out, e->bytes, e->rank, e->written);
        send(e, e->out);
        receive(e, e->in);
        e->sum = read_all(e->in, e->bytes);
    } else {
        receive(e, e->in);
        e->sum = read_all(e->in, e->bytes);
        pingpong_write(e->out, e->bytes, e->rank, e->written);
        send(e, e->out);
    }
}
