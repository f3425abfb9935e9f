/* The burn: all cores work for hours, phase after phase, and every result is compared bit for bit with what it must be. */
#ifndef PLUMBLINE_BURN_H
#define PLUMBLINE_BURN_H

#include <stdatomic.h>

#include "../kernels/flops/kernel.h"
#include "internal.h"

enum { BURN_DGEMM, BURN_FMA, BURN_MEMORY, BURN_CACHE, BURN_MESSAGE, BURN_PHASES };
extern const char *const burn_phases[BURN_PHASES + 1];      /* their names; ends with NULL */

/* --- errors ---------------------------------------------------------------------------------------------------- */

/* Bits that are not what they must be.  In a word that was right when it was looked at again, `seen` is not known any more. */
typedef struct {
    const char *buffer;
    const void *address;
    size_t offset;          /* bytes from the buffer's begin */
    uint64_t expected, seen, bits, again;   /* bits: that differ; again: the same word, from memory where the CPU lets us ask for that */
    bool lost;              /* seen and expected are not known: it was right the second time */
    int from;               /* thread whose message it was; -1 */
} burn_error;

enum { BURN_TOLD = 8 };     /* of a thread and a phase are told one by one; the others are counted */
typedef struct { long count; burn_error told[BURN_TOLD]; } burn_errors;

/* Counts an error at word `i` of a buffer.  `bits` has those that differed at first sight, for a word that is right now. */
void burn_differs(burn_errors *, const char *buffer, const void *begin, size_t i, uint64_t expected, uint64_t bits, int from);

/* Compares with a copy: true where all bits are equal. */
bool burn_compare(burn_errors *, const char *buffer, const void *found, const void *right, size_t words);

/* --- phases ---------------------------------------------------------------------------------------------------- */

/* Words that are written, left alone and read again: block after block, in one generation after the other. */
typedef struct {
    const char *name;
    uint64_t *at;
    size_t blocks, next;    /* those before `next` are a generation ahead */
    uint64_t seed, generation;
} burn_pattern;

typedef struct {
    int thread, cpu;
    double work, seconds, clock;        /* of the phase at hand: operations or bytes; Hz, not a number where not known */
    burn_errors errors;
    bool flip;                          /* one bit is still to be flipped: proof that it is found */
    double *a, *b, *c;                  /* DGEMM */
    flops_stream *stream;
    double steps;                       /* that the stream has done since its values were set */
    burn_pattern memory, cache;
    uint64_t *box[2];                   /* messages, by turns */
} burn_thread;

typedef struct burn_state burn_state;
typedef void burn_phase(burn_state *, burn_thread *);
burn_phase burn_dgemm, burn_fma, burn_memory, burn_cache, burn_message;

/* What a thread has of its own, touched by it first. */
void burn_dgemm_create(burn_thread *);
void burn_fma_create(burn_thread *);
void burn_pattern_create(burn_pattern *, const char *name, size_t bytes, uint64_t seed);
void burn_message_create(burn_thread *);
double *burn_dgemm_reference(void);     /* by another way than the kernel's; to be freed */
const char *burn_dgemm_isa(void), *burn_fma_isa(void);      /* NULL: as the compiler makes it */
enum { BURN_ORDER = 240 };              /* of the matrices: whole tiles of any width, rows of no power of two, three of them in an L2 */

/* In a phase: whether there is time left.  Flips the bit that the self-test has asked for, once. */
bool burn_goes_on(const burn_state *);
void burn_flip(burn_thread *, void *buffer, size_t bytes);

/* --- the whole ------------------------------------------------------------------------------------------------- */

typedef struct {
    double minutes, slice;      /* s: of a phase in a round */
    bool phase[BURN_PHASES];
    int threads;
    size_t memory, cache;       /* bytes of each thread */
    size_t keep;                /* bytes of records that may wait to be written */
    const char *series;         /* file of the records; NULL: standard output */
    bool resume;
    const char *sensors;        /* what stands before /sys and /proc */
    int flip_thread, flip_phase;
    long flip_round;            /* 0: none */
    pl_options harness;         /* for the parts of the runtime that ask for it */
} burn_options;
burn_options burn_parse(int argc, char **argv);

struct burn_state {
    const burn_options *options;
    burn_thread **thread;       /* each on pages of its own */
    double *reference;
    double until;               /* end of the phase, by pl_now() */
    _Atomic long last_step;     /* of the messages */
    int phase;
};
extern atomic_int burn_signal;  /* that asks for the end; 0: none */
int burn_run(void *state);
/* Goes on in a process of its own; the one that others wait for ends with its exit code, even where the burn hangs in a write. */
void burn_go_apart(void);
void burn_announce(int code);   /* how it ends, before it says so: that may be to a file system that hangs */
void burn_leave(int code);

/* --- what is read beside it ------------------------------------------------------------------------------------ */

/* Temperatures and power.  What is not there is written with the reason. */
void burn_sensors_open(const char *root);
void burn_sensors_begin(void);
void burn_sensors_write(FILE *, double seconds);    /* ", "temperature": {...}, "power": {...}" since begin() */
void burn_sensors_missing(FILE *);                  /* members of an object: name, reason */
/* The number that a file begins with. */
bool burn_number_in(const char *path, double *value);
/* Counts that must not rise: memory errors, machine checks, throttling. */
void burn_counts_open(const char *root);
void burn_counts_write(FILE *);                     /* since open() */
void burn_counts_missing(FILE *, const char *separator);

/* --- records --------------------------------------------------------------------------------------------------- */

/* Lines are written by a thread of their own, in their order, as soon as the file system takes them: the burn waits for no file.  Those that
 * wait are kept in memory, `keep` bytes at most; beyond that the oldest are lost, and counted. */
void burn_series_open(const char *path, bool append, size_t keep);      /* keep: bytes that may wait */
void burn_series_put(char *line, size_t length);    /* of malloc, which it keeps */
typedef struct { long written, lost, waiting, most_waiting; int error; bool hangs; } burn_series;   /* error: the last one, errno; 0: none */
burn_series burn_series_so_far(void);
burn_series burn_series_close(double patience);     /* seconds; what waits then is lost, and the file hangs where a write has not come back */

/* What a file says of the burn that it is the record of. */
typedef struct { double done; long round, errors; } burn_past;
burn_past burn_read_past(const char *path, int threads);

#endif
