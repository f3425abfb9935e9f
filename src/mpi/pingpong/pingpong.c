/* PingPong as the runtime sees it: variants, data, model, verification.  The ranks of the first half of the processes
 * exchange messages with those of the second half, all pairs at once. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "exchanges.h"
#include "inject.h"
#include "runtime.h"

static const pl_variant variants[] = {
    {"standard", PL_LOOP(pingpong_standard), .about = "the buffers are never touched, as in the Intel MPI Benchmarks"},
    {"swapped", PL_LOOP(pingpong_swapped), .about = "a second exchange with the buffers changed over"},
    {"touched", PL_LOOP(pingpong_touched), .about = "every message is written before it is sent, and read when it has come"},
    {0},
};

enum { LATENCY };

static const pl_parameter parameters[] = {
    [LATENCY] = PL_INJECT_PARAMETER,
    {0},
};

/* --- data ------------------------------------------------------------------------------------------------------ */

enum { OUT, IN, BACK, BUFFERS };    /* BACK is touched by the verification only */

typedef struct {
    pl_buffers *buffers;
    pingpong_ends ends;
} pair_data;

static size_t footprint(const pl_case *c) { return 2 * c->n; }
static bool is_swapped(const pl_case *c) { return c->variant->loop == (pl_loop)pingpong_swapped; }

static void *create(const pl_case *c)
{
    const size_t bytes[BUFFERS] = {c->n, c->n, c->n};
    pair_data *d = pl_allocate(sizeof *d, "the buffers");
    d->buffers = pl_buffers_create(c, BUFFERS, bytes, NULL);
    d->ends = (pingpong_ends){.out = d->buffers->at[OUT], .in = d->buffers->at[IN], .back = d->buffers->at[OUT], .bytes = c->n,
                              .rank = pl_processes.rank, .partner = pl_partner(), .first = pl_leads()};
    return d;
}

static pingpong_ends *ends_of(const pl_case *c) { return &((pair_data *)c->data)->ends; }

static void touch(const pl_case *c, int thread, int threads)
{
    if (thread == 0) {
        pingpong_write(ends_of(c)->out, c->n, pl_processes.rank, 0);
        memset(ends_of(c)->in, 0, c->n);
    }
}

/* --- the work -------------------------------------------------------------------------------------------------- */

static void check(const pl_case *c)
{
    if (c->n > INT_MAX)
        pl_fail("--size %zu: MPI counts the bytes of a message with an int: give at most %d", c->n, INT_MAX);
    pl_inject_check(c->parameters[LATENCY]);
}

static void plan(const pl_case *c, pl_plan *p) { pl_inject(c->parameters[LATENCY]); }

static void run(const pl_case *c, const pl_plan *p) { ((pingpong_exchange *)p->loop)(ends_of(c)); }

/* Messages one after the other that a pass takes the time of. */
static int messages(const pl_case *c) { return is_swapped(c) ? 4 : 2; }

static pl_work work(const pl_case *c)
{
    return (pl_work){.load_bytes = (double)messages(c) * (double)c->n, .source = "the messages of one pair, both ways"};
}

static void facts(const pl_case *c, pl_fact *found)
{
    found[0] = (pl_fact){"messages", NULL, messages(c)};
}

/* --- verification ---------------------------------------------------------------------------------------------- */

/* Away with the partner's message; our own comes anew, so that what a pass has moved is seen in both.  What swapped gets
 * back is what stands in `out` already: it comes into a buffer of its own, or nobody would see that it came. */
static void poison(const pl_case *c)
{
    pingpong_ends *const e = ends_of(c);
    e->written = 0;
    pingpong_write(e->out, c->n, pl_processes.rank, 0);
    memset(e->in, 0xFF, c->n);
    if (is_swapped(c))
        e->back = memset(((pair_data *)c->data)->buffers->at[BACK], 0xFF, c->n);
}

static uint64_t sum_of(size_t bytes, int sender, uint64_t written)
{
    uint64_t sum = 0, last = 0;
    const size_t words = bytes / sizeof last;
    for (size_t i = 0; i < words; i++)
        sum += pingpong_word(sender, written, i);
    const uint64_t word = pingpong_word(sender, written, words);
    memcpy(&last, &word, bytes % sizeof last);
    return sum + last;
}

static double verify(const pl_case *c)
{
    const bool touched = c->variant->loop == (pl_loop)pingpong_touched;
    pingpong_ends *const e = ends_of(c);
    double wrong = pingpong_wrong_bytes(e->in, c->n, e->partner, touched) +
                   pingpong_wrong_bytes(e->out, c->n, pl_processes.rank, touched);
    if (is_swapped(c))
        wrong += pingpong_wrong_bytes(e->back, c->n, pl_processes.rank, 0);
    e->back = e->out;
    return wrong + (touched && e->sum != sum_of(c->n, e->partner, 1));
}

static const pl_kernel pingpong = {
    .name = "pingpong", .title = "messages to and fro between two processes, --size is their bytes", .variants = variants,
    .parameters = parameters, .check = check, .footprint = footprint, .create = create, .touch = touch, .plan = plan,
    .run = run, .work = work, .verify = verify, .poison = poison, .buffers = pl_first_buffers, .destroy = pl_first_buffers_destroy, .facts = facts,
    .from_zero = true, .in_pairs = true,
};

int main(int argc, char **argv) { return pl_mpi_main(argc, argv, &pingpong); }
