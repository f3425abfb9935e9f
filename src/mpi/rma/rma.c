/* Remote gets as the runtime sees them: variants, data, model, verification.  The ranks of the first half of the
 * processes, the origins, each work on the memory of one of the second half, all pairs at once. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "memory.h"
#include "runtime.h"

enum { WINDOW, MESSAGES, MEMORY, COMPUTE };      /* of pl_case.parameters */
enum { SYMMETRIC = 1 };                 /* layout of OpenSHMEM's variants */

#ifdef RMA_SHMEM
#define SHMEM(function) .layout = SYMMETRIC, .loop = (pl_loop)function
#define SHMEM_BUILT ""
#else
#define SHMEM(function) .layout = SYMMETRIC
#define SHMEM_BUILT " (in the program rma-shmem, which is built where the MPI has OpenSHMEM)"
#endif

enum { GETS = 7 };    /* they stand first */

static const pl_variant variants[] = {
    {"get", PL_LOOP(rma_get), .about = "MPI_Get, W of them, then MPI_Win_flush"},
    {"rget", PL_LOOP(rma_rget), .about = "MPI_Rget, W of them, then MPI_Waitall"},
    {"rolling", PL_LOOP(rma_rolling), .about = "MPI_Rget; the oldest 32 of W are waited for, 32 started: the source's way"},
    {"get_busy", PL_LOOP(rma_get_busy), .about = "get, while the target computes: it calls the MPI every --compute us"},
    {"get_rewritten", PL_LOOP(rma_get_rewritten), .about = "get of what the target has just written"},
    {"shmem_get", SHMEM(rma_shmem_get), .about = "shmem_getmem, one after the other whatever W" SHMEM_BUILT},
    {"shmem_get_nbi", SHMEM(rma_shmem_get_nbi), .about = "shmem_getmem_nbi, W of them, then shmem_quiet" SHMEM_BUILT},
    {"put", PL_LOOP(rma_put), .about = "MPI_Put, W of them, then MPI_Win_flush: done at the target"},
    {"put_busy", PL_LOOP(rma_put_busy), .about = "put, while the target computes"},
    {"rput", PL_LOOP(rma_rput), .about = "MPI_Rput, W of them, then MPI_Waitall: done at the origin; a flush per pass"},
    {"send", PL_LOOP(rma_send), .about = "MPI_Isend, W of them, which the target answers with an empty message"},
    {"shmem_put", SHMEM(rma_shmem_put), .about = "shmem_putmem, W of them, then shmem_quiet" SHMEM_BUILT},
    {"shmem_put_nbi", SHMEM(rma_shmem_put_nbi), .about = "shmem_putmem_nbi, W of them, then shmem_quiet" SHMEM_BUILT},
    {0},
};

static const char *const kinds[] = {[RMA_ALLOCATE] = "allocate", [RMA_CREATE] = "create", NULL};

static const pl_parameter parameters[] = {
    [WINDOW] = {.name = "window", .value = 1, .multiple = 1, .about = "messages outstanding at once, W",
                .most = RMA_MOST_OUTSTANDING},
    [MESSAGES] = {.name = "messages", .value = 256, .multiple = 1, .most = 1 << 24, .of_data = true,
                  .about = "messages of a pass, each with a place of its own"},
    [MEMORY] = {.name = "memory", .words = kinds, .of_data = true,
                .about = "the window's: MPI_Win_allocate's, or our own by MPI_Win_create"},
    [COMPUTE] = {.name = "compute", .value = 1000, .multiple = 1, .most = 10000000,
                 .about = "us that the target of get_busy and put_busy computes between two calls of the MPI"},
    {0},
};

/* --- data ------------------------------------------------------------------------------------------------------ */

static size_t exposed(const pl_case *c) { return c->n * (size_t)c->parameters[MESSAGES]; }
static size_t footprint(const pl_case *c) { return 2 * exposed(c); }
static bool is_symmetric(const pl_case *c) { return c->variant->layout == SYMMETRIC; }

static void *create(const pl_case *c)
{
    return rma_memory_create(c, c->parameters[MESSAGES], (rma_kind)c->parameters[MEMORY], is_symmetric(c));
}

/* The transfer of this case; the data are those of others, too. */
static rma_ends ends_of(const pl_case *c)
{
    rma_ends ends = ((const rma_memory *)c->data)->ends;
    ends.outstanding = c->parameters[WINDOW];
    ends.computes = 1e-6 * (double)c->parameters[COMPUTE];
    return ends;
}

static rma_state *state_of(const pl_case *c) { return &((rma_memory *)c->data)->state; }

/* What stands at the words of a process's memory: no two places are alike.  Only targets rewrite theirs. */
static uint64_t word_of(const pl_case *c, int rank, bool is_exposed, size_t i)
{
    const uint64_t first = pl_random_bits(((uint64_t)(unsigned)rank << 48) + ((uint64_t)is_exposed << 47) + i);
    return is_exposed && rank >= pl_processes.ranks / 2 ? first ^ rma_change(state_of(c)->written) : first;
}

/* Of the word at byte i; the last one may be cut off. */
static size_t word_bytes(size_t bytes, size_t i) { return bytes - i < sizeof(uint64_t) ? bytes - i : sizeof(uint64_t); }

static void fill(const pl_case *c, unsigned char *memory, int rank, bool is_exposed, uint64_t change)
{
    const size_t bytes = exposed(c);
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        const uint64_t word = word_of(c, rank, is_exposed, i / sizeof word) ^ change;
        memcpy(memory + i, &word, word_bytes(bytes, i));
    }
}

static double wrong_bytes(const pl_case *c, const unsigned char *memory, int rank, bool is_exposed)
{
    const size_t bytes = exposed(c);
    double wrong = 0;
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        const uint64_t word = word_of(c, rank, is_exposed, i / sizeof word);
        const size_t length = word_bytes(bytes, i);
        if (memcmp(memory + i, &word, length))
            for (size_t k = 0; k < length; k++)
                wrong += memory[i + k] != ((const unsigned char *)&word)[k];
    }
    return wrong;
}

static void touch(const pl_case *c, int thread, int threads)
{
    if (thread > 0)
        return;
    const rma_ends ends = ends_of(c);
    fill(c, ends.local, pl_processes.rank, false, 0);
    fill(c, ends.exposed, pl_processes.rank, true, 0);
    rma_synchronise(c->data);
}

static const void *where(const pl_case *c, size_t *bytes)
{
    *bytes = exposed(c);
    return ends_of(c).local;
}

/* --- the work -------------------------------------------------------------------------------------------------- */

static void check(const pl_case *c)
{
    if (c->n > INT_MAX)
        pl_fail("--size %zu: MPI counts the bytes of a message with an int: give at most %d", c->n, INT_MAX);
    if (c->parameters[WINDOW] > c->parameters[MESSAGES])
        pl_fail("--window %ld: is more than the %ld messages of a pass: give --messages %ld or more", c->parameters[WINDOW],
                c->parameters[MESSAGES], c->parameters[WINDOW]);
    if (is_symmetric(c))
        rma_shmem_expect(exposed(c));
    else if (c->parameters[MEMORY] == RMA_ALLOCATE)
        rma_check_shared(exposed(c));
}

/* Whether this process must have something new in one of its memories after a pass: gets write to the origin's, all else
 * to the target's. */
static bool arrives(const pl_case *c, bool in_exposed)
{
    const bool is_get = c->variant < variants + GETS;
    return in_exposed == !is_get && ends_of(c).origin == is_get;
}

/* Not after a barrier, which may wait for messages that the pass has not waited for. */
static void look(const pl_case *c, const rma_ends *e)
{
    rma_tell_target(e);
    for (int in_exposed = 0; in_exposed < 2; in_exposed++)
        if (arrives(c, in_exposed))
            e->state->wrong = wrong_bytes(c, in_exposed ? e->exposed : e->local, e->partner, !in_exposed);
}

static void run(const pl_case *c, const pl_plan *p)
{
    const rma_ends ends = ends_of(c);
    rma_transfer *const transfer = (rma_transfer *)p->loop;
    if (transfer == rma_get_busy || transfer == rma_get_rewritten || transfer == rma_put_busy)
        transfer(&ends);
    else
        rma_timed(&ends, transfer);
    if (ends.state->verifying)
        look(c, &ends);
}

/* Of the origins: the transfers alone, whatever else a pass has to do. */
static double communication(const pl_case *c)
{
    const double seconds = state_of(c)->seconds;
    state_of(c)->seconds = 0;
    return seconds;
}

static pl_work work(const pl_case *c)
{
    return (pl_work){.load_bytes = (double)exposed(c), .source = "the messages of one pair"};
}

static void facts(const pl_case *c, pl_fact *found)
{
    const long messages = c->parameters[MESSAGES], outstanding = c->parameters[WINDOW];
    const bool answered = c->variant->loop == (pl_loop)rma_send;
    found[0] = (pl_fact){"acknowledgements", NULL, answered ? (double)((messages + outstanding - 1) / outstanding) : 0};
}

/* --- verification ---------------------------------------------------------------------------------------------- */

/* Every byte wrong where the messages arrive; everything else as at first. */
static void poison(const pl_case *c)
{
    const rma_ends ends = ends_of(c);
    ends.state->verifying = true;
    ends.state->wrong = 0;
    for (int in_exposed = 0; in_exposed < 2; in_exposed++) {
        unsigned char *const memory = in_exposed ? ends.exposed : ends.local;
        if (arrives(c, in_exposed)) {
            fill(c, memory, ends.partner, !in_exposed, UINT64_MAX);
            ends.state->wrong = INFINITY;
        } else
            fill(c, memory, pl_processes.rank, in_exposed, 0);
    }
    rma_set_guards(c->data);
    rma_synchronise(c->data);
}

static double verify(const pl_case *c)
{
    const rma_ends ends = ends_of(c);
    double wrong = ends.state->wrong;
    ends.state->verifying = false;
    rma_synchronise(c->data);
    if (!rma_guards_intact(c->data))
        return INFINITY;
    for (int in_exposed = 0; in_exposed < 2; in_exposed++)
        if (!arrives(c, in_exposed))
            wrong += wrong_bytes(c, in_exposed ? ends.exposed : ends.local, pl_processes.rank, in_exposed);
    return wrong;
}

static const pl_kernel rma = {
    .name = "rma", .title = "transfers between two memories, W outstanding at once; --size is their bytes",
    .variants = variants, .parameters = parameters, .most_threads = 1, .check = check, .footprint = footprint, .create = create,
    .touch = touch, .run = run, .work = work, .verify = verify, .poison = poison, .where = where,
    .destroy = rma_memory_destroy, .facts = facts, .communication = communication,
    .from_zero = true, .in_pairs = true,
};

int main(int argc, char **argv)
{
    rma_shmem_configure();
    return pl_mpi_main(argc, argv, &rma);
}
