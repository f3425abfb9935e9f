/* Plumbline's measuring runtime: what a kernel gives, and what it gets.
 *
 * A kernel is a table of variants and some functions on its data (pl_kernel).  The runtime owns all else: options,
 * buffers, threads, clock, interleaving, limit streams, verification, records.  A program is one line:
 *
 *     int main(int argc, char **argv) { return pl_main(argc, argv, &triad); }
 */
#ifndef PLUMBLINE_H
#define PLUMBLINE_H

/* A result that is not a number, or was not written, is found wrong by being no number. */
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "plumbline: with -ffast-math or -ffinite-math-only wrong results are not found: leave it out of cflags, or add -fno-finite-math-only"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { PL_LINE = 64, PL_MAX_ARRAYS = 4, PL_MAX_BUFFERS = 16, PL_MAX_PARAMETERS = 8, PL_MAX_STRINGS = 4, PL_MAX_FACTS = 64 };

typedef enum { PL_PARINIT, PL_NOINIT } pl_init;     /* who touches the pages first: every thread its part, or thread 0 */
/* Arrays of just the length needed, at pages of their own; of a fixed maximum length; each from malloc, or from the ALLOCATE of the
 * kernel's Fortran, wherever that puts it. */
typedef enum { PL_DYNAMIC, PL_STATIC, PL_MALLOC, PL_ALLOCATE } pl_alloc;
typedef enum { PL_HUGE, PL_BASE } pl_pages;         /* ask for transparent huge pages, or forbid them */

typedef struct pl_kernel pl_kernel;
typedef struct pl_buffers pl_buffers;
typedef void (*pl_loop)(void);                      /* a kernel casts it to its own prototype */

/* One way to write the loop.  Variants of a kernel differ from its first one in one thing only. */
typedef struct {
    const char *name;
    const char *isa;        /* instruction set that the CPU must have: NULL, "sse2", "avx2", "avx512f" */
    bool nontemporal;       /* its stores bypass the caches: no write-allocate */
    int layout;             /* variants of one number work on the same data; 0 for all of most kernels */
    pl_loop loop;           /* NULL: known, but not in this build (see about) */
    const char *about;
    const char *compiler;   /* NULL: the C compiler and flags of the build */
    const char *flags;
    bool by_name;           /* runs where it is named; `all` leaves it out */
    bool forks;             /* its passes open parallel regions of their own: the first thread alone calls run(), for all elements */
} pl_variant;

/* Variants with the intrinsics of x86-64, one line of a table each, comma and all: FUNCTION_avx512, _avx2 and _sse2 (simd.h) under one
 * name, of which the widest that the CPU has is taken; the first two of them; or one under a name of its own. */
#define PL_LOOP(function) .loop = (pl_loop)function

/* A variant in Fortran, where there is a compiler for it. */
#ifdef PL_FORTRAN
#define PL_IN_FORTRAN(variant, options, function, ...) \
    {variant, PL_LOOP(function), .compiler = PL_FORTRAN_COMPILER, .flags = options, __VA_ARGS__},
#else
#define PL_IN_FORTRAN(variant, options, function, ...) {variant, .about = "built without a Fortran compiler"},
#endif

#if defined(__x86_64__)
#define PL_OF_ISA(variant, instructions, function, ...) {variant, .isa = instructions, .loop = (pl_loop)function, __VA_ARGS__},
#define PL_AVX2(variant, function, ...) PL_OF_ISA(variant, "avx2", function##_avx2, __VA_ARGS__)
#define PL_WIDEST_AVX(variant, function, ...) \
    PL_OF_ISA(variant, "avx512f", function##_avx512, __VA_ARGS__) PL_AVX2(variant, function, __VA_ARGS__)
#define PL_WIDEST(variant, function, ...) \
    PL_WIDEST_AVX(variant, function, __VA_ARGS__) PL_OF_ISA(variant, "sse2", function##_sse2, __VA_ARGS__)
#else
#define PL_AVX2(variant, function, ...)
#define PL_WIDEST_AVX(variant, function, ...) {variant, .about = "intrinsics are written for x86-64 only"},
#define PL_WIDEST PL_WIDEST_AVX
#endif

/* An option of the kernel's own: a positive number, or one of a set of words, whose positions from 0 are its values.  A
 * list of values makes a case of each: interleaved in one group, or, where the data differ, a group of each. */
typedef struct {
    const char *name;
    long value;             /* default */
    long multiple;          /* must be a multiple of this */
    const char *about;
    long most;              /* 0: 2^30 */
    const char *const *words;   /* ends with NULL; NULL: numbers */
    bool of_data;           /* the data differ with its value */
    bool by_turns;          /* they differ, and its cases are of one group all the same */
    bool from_zero;         /* a number of 0 is allowed */
    bool *given;            /* becomes true where the option is; may be NULL */
} pl_parameter;

/* An option of the kernel's own that is a string: a file, a folder. */
typedef struct {
    const char *name;
    const char *about;
} pl_string_parameter;

/* One thing to be timed: a variant at a size, with a number of threads, on a set of data. */
typedef struct {
    const pl_kernel *kernel;
    const pl_variant *variant;
    size_t n;               /* elements */
    int threads;
    pl_init init;
    pl_alloc alloc;
    pl_pages pages;
    size_t shift;           /* bytes between the alignments of consecutive arrays */
    long parameters[PL_MAX_PARAMETERS];
    const char *const *text;    /* of pl_kernel.strings; NULL where not given */
    int narrowed;           /* above 1: each thread does the first of so many parts of its share, on data that stay in its cache; of
                               plan(), share() and run() only: work() is asked for all of it */
    int level;              /* in which the working set lives: 1, 2, 3; 0 is memory; not known before work() */
    void *data;
} pl_case;

/* So many places and more a healthy core's prefetchers may not follow; four they do. */
enum { PL_MANY = 16 };

/* The work of one pass; `source` says where the figures come from.
 *
 * The first three are the application's: what the loop says, whatever the caches do.  Traffic, what crosses the boundary
 * of c->level, is fetched_bytes + 2 written_bytes (write-allocate; once where the variant is non-temporal or the data in
 * L1) + updated_bytes.  Leave all three 0 where the traffic is load_bytes and store_bytes. */
typedef struct {
    double load_bytes, store_bytes, flops;
    const char *source;
    double fetched_bytes;   /* lines that are brought, reuse in the caches below regarded */
    double written_bytes;   /* lines written without having been read */
    double updated_bytes;   /* lines written that are among those fetched: no write-allocate */
    int places;             /* that lines are brought from by turns, where they are many: PL_MANY and more are a part of their own */
} pl_work;

/* What the passes of a thread have in common. */
enum { PL_PIECES = 3 };
typedef struct { size_t begin, end; } pl_range;
typedef struct { pl_range outer, inner; } pl_piece;
typedef struct {
    int thread;
    pl_loop loop;           /* the variant's, unless the kernel chooses another */
    pl_range part;          /* of what the threads share out: of the elements, unless the kernel says otherwise */
    int pieces;             /* the part as pl_pieces() cuts it, where a kernel wants that */
    pl_piece piece[PL_PIECES];
    /* For the kernel's own use: */
    double *at[PL_MAX_ARRAYS];      /* where its part of each array begins */
    size_t block;
} pl_plan;

/* Something that a kernel found out about where it ran, for its record: text, or a number where text is NULL. */
typedef struct {
    const char *name;
    const char *text;
    double number;
} pl_fact;

struct pl_kernel {
    const char *name;
    const char *title;
    const pl_variant *variants;                             /* ends with a NULL name */
    const pl_parameter *parameters;                         /* ends with a NULL name; may be NULL */
    const pl_string_parameter *strings;                     /* ends with a NULL name; may be NULL */
    bool arrays;                                            /* its data are pl_arrays: may be static, may be shifted */
    pl_buffers *(*buffers)(const pl_case *);                /* of its data: pl_data_buffers, pl_first_buffers; NULL: none.  Guards of arrays
                                                               and buffers are set before verify's pass and must be intact after it */
    int most_threads;                                       /* 0: any number */
    size_t usual_size;                                      /* elements where --size is not given; 0: 1e6 */
    size_t (*own_size)(const char *const *text);            /* the same where the strings say; may be NULL */
    size_t (*elements)(const pl_case *);                    /* elements that the chosen data have; NULL: as --size says */
    void (*check)(const pl_case *);                         /* pl_fail()s on what cannot be run; may be NULL */
    size_t (*footprint)(const pl_case *);                   /* bytes of all data of one case: its working set */
    void *(*create)(const pl_case *);                       /* address space only; NULL where there is none */
    void (*touch)(const pl_case *, int thread, int threads);/* first touch and values, this thread's part */
    void (*plan)(const pl_case *, pl_plan *);               /* untimed, by each thread before its passes: what they have in common;
                                                               NULL: as pl_part() divides the elements */
    void (*run)(const pl_case *, const pl_plan *);          /* one pass of one thread */
    pl_work (*work)(const pl_case *);
    double (*verify)(const pl_case *);                      /* max |error| after one pass; NaN: not written */
    double (*verify_part)(const pl_case *, int thread);     /* the same of what belongs to a thread, all at once; NULL: verify has all */
    bool refresh;                                           /* all is touched once more before verify's pass: other variants have
                                                               written what it reads */
    double (*tolerance)(const pl_case *);                   /* the largest max |error| that is right; NULL: 0 */
    void (*poison)(const pl_case *);                        /* make an old result unusable before verify's pass; may be NULL */
    const void *(*where)(const pl_case *, size_t *bytes);   /* memory whose pages are looked at; NULL: the arrays, the largest buffer */
    void (*destroy)(void *data);
    bool sizes_by_turns;                                    /* its sizes are measured by turns: one group, all of their data at once */
    void (*prepare)(const pl_case *);                       /* untimed, before every pass, which is then timed on its own */
    void (*facts)(const pl_case *, pl_fact *);              /* at most PL_MAX_FACTS; they stand among the record's options */
    bool from_zero;                                         /* a size of 0 is a case, too: an empty message */
    bool in_pairs;                                          /* its processes work in pairs (pl_partner): an even number is needed */
    double (*communication)(const pl_case *);               /* seconds that this process has spent in communication since the last
                                                               call; NULL where nobody asks.  Stands in the record */
    size_t (*numbers)(const pl_case *);                     /* that are kept of each sample; NULL: none */
    void (*sampled)(const pl_case *, int sample, double *row);  /* after each timed repetition: the numbers to keep; a sample may
                                                               come again.  May be NULL */
    void (*further)(const pl_case *, const double *rows, long passes, int samples, FILE *);     /* further keys of the record, as
                                                               JSON; of rank 0, all others write to NULL.  May be NULL */
    double (*share)(const pl_case *, int thread);           /* of the work of a pass, a thread's, in any unit; NULL: as long as
                                                               the part of its plan */
    bool private_lines;                                     /* within a pass no thread writes a line that another one touches, but where
                                                               two parts meet */
    bool narrows;                                           /* plan() and share() regard pl_case.narrowed: pl_narrow() */
    void *(*allocate)(size_t doubles);                      /* Fortran's ALLOCATE, and its DEALLOCATE; NULL: there is none */
    void (*deallocate)(void *);
};

/* The limit streams: load, store, update, copy, triad, with and without non-temporal stores, widest SIMD (streams.c). */
extern const pl_kernel pl_streams;

int pl_main(int argc, char **argv, const pl_kernel *kernel);

/* The processes that measure together: one, but in MPI programs (src/mpi/runtime).  All of them call the functions of a
 * kernel in the same order; a sample is the time of the slowest, max_error the largest of all, and the first one
 * (rank 0) writes. */
typedef struct {
    int rank, ranks;
    int on_node, at_node;               /* how many of them share this node's memory, and which of those this is */
    int node;                           /* which node: the rank of the first of them */
    void *(*share)(size_t bytes);       /* zeroed memory that those of a node have in common; NULL: there is none */
    const char *library;                /* the MPI, as it calls itself; NULL without one */
    void (*barrier)(void);
    double (*reduce_max)(double);       /* of all processes; not a number where it is that on any */
    double (*reduce_sum)(double);
    void (*allgather)(int own, int *all); /* one number of each, in the order of ranks, known to all */
    void (*write_places)(void);         /* host and process number of each, for the machine's record; NULL: one process */
    void (*stop)(int code);             /* ends all of them; does not return */
} pl_process_group;
extern pl_process_group pl_processes;

/* Pairs: a process of the first half leads, and its partner is the one at its place in the second half. */
bool pl_leads(void);
int pl_partner(void);

/* --- for kernels ------------------------------------------------------------------------------------------- */

/* Contiguous part of 0..n-1 of a thread, as OpenMP's static schedule gives it without a chunk size. */
pl_range pl_part(size_t n, int thread, int threads);

/* Of a thread's share what it does of it: all, unless the case is narrowed. */
pl_range pl_narrow(const pl_case *, pl_range share);

/* A part of two nested loops, the inner one `width` long, their steps numbered as they are taken: the end of an inner loop,
 * whole ones, the beginning of one.  Returns how many pieces there are.  For loops that are too short to be divided by the
 * outer one alone: 126 planes give 112 threads two each, or none. */
int pl_pieces(pl_range part, size_t width, pl_piece piece[PL_PIECES]);

/* `count` arrays of n doubles with room for a guard line on either side: each aligned to 4096 bytes and shifted by 0, k, 2k, ...
 * bytes (hager2007, section 3.1), or at distances of 8,000,000 bytes, or where the language puts them. */
typedef struct {
    int count;
    size_t n, mapped;
    double *array[PL_MAX_ARRAYS];
    unsigned char *base;
    pl_alloc alloc;
    void *own[PL_MAX_ARRAYS];       /* what has to be given back, of malloc and ALLOCATE */
    void (*give_back)(void *);
} pl_arrays;
pl_arrays *pl_arrays_create(const pl_case *, int count);
size_t pl_arrays_footprint(const pl_case *, int count);
void pl_arrays_set_guards(pl_arrays *);         /* not before the first touch: it would place pages */
bool pl_arrays_guards_intact(const pl_arrays *);
void pl_arrays_destroy(void *);

/* Buffers of any type and length: page-aligned, each plus offset[i] bytes (NULL: none), with a guard line on either side.
 * Pages are not touched before touch() and set_guards(). */
struct pl_buffers {
    int count;
    size_t bytes[PL_MAX_BUFFERS], mapped;
    void *at[PL_MAX_BUFFERS];
    unsigned char *base;
};
pl_buffers *pl_buffers_create(const pl_case *, int count, const size_t *bytes, const size_t *offset);
void pl_buffers_set_guards(pl_buffers *);
bool pl_buffers_guards_intact(const pl_buffers *);
void pl_buffers_destroy(void *);
pl_buffers *pl_data_buffers(const pl_case *);   /* of a kernel whose data are buffers */
pl_buffers *pl_first_buffers(const pl_case *);  /* of one whose data begin with a pointer to them, which may be NULL */
void pl_first_buffers_destroy(void *data);      /* of such: the buffers, which are there, and the data themselves */

/* One line on standard error that says what is wrong and how to fix it; then exit 2. */
_Noreturn void pl_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void pl_tell_wrong(const char *why);     /* before it, of results that cannot be right: a record, so that no other run makes up for them */
void *pl_allocate(size_t bytes, const char *what);     /* zeroed; fails if there is none */
void *pl_grow(void *old, size_t bytes, const char *what);   /* realloc(); fails if there is none */
_Noreturn void pl_no_memory(const pl_case *);           /* for the data of this case */

void pl_barrier(void);     /* in run(): barrier of the threads that work */

/* Bytes that one thread has of the caches of a level (1, 2, 3) when as many threads as the case has share them; 0 without
 * such a cache. */
size_t pl_cache_share(const pl_case *, int level);

/* The most of the levels up to one: an L3 that many threads share may leave each less than its L2.  And of those below the
 * case's own level. */
static inline size_t pl_cache_up_to(const pl_case *c, int level)
{
    size_t most = 0;
    for (; level > 0; level--)
        most = pl_cache_share(c, level) > most ? pl_cache_share(c, level) : most;
    return most;
}
static inline size_t pl_cache_below(const pl_case *c) { return pl_cache_up_to(c, c->level ? c->level - 1 : 3); }

double pl_now(void);    /* seconds, monotonic */

const char *pl_is_virtual(void);        /* yes, no, not known */
size_t pl_huge_page(void);              /* bytes of a transparent one: 2 MiB with base pages of 4 KiB; on Arm 32 with 16, 512 with 64 */
bool pl_field_of(const char *path, const char *name, char *value, size_t length);   /* of a file's first line "name : value" */
size_t pl_memory_available(void);       /* bytes that may be used, cgroup limit regarded */

/* core.c: without counters, on the core that calls; NaN where the instruction set is not known. */
double pl_core_clock(double seconds);                       /* Hz */
double pl_core_additions(double seconds, double clock);     /* per cycle */
double pl_core_divisions(double seconds);                   /* per second */

static inline size_t pl_least(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t pl_round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

/* Elements before the first whole cache line, n at most. */
static inline size_t pl_before_line(const double *x, size_t n)
{
    return pl_least((size_t)(-(uintptr_t)x % PL_LINE) / sizeof(double), n);
}

/* 64 random bits of a number, the same everywhere (SplitMix64: Steele, Lea, Flood 2014). */
static inline uint64_t pl_random_bits(uint64_t z)
{
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Whether memory is as memset(0xFF) made it: no pass has written there. */
static inline bool pl_untouched(const double *v)
{
    uint64_t bits;
    memcpy(&bits, v, sizeof bits);
    return bits == UINT64_MAX;
}

/* For qsort() of doubles. */
static inline int pl_ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The larger error; not a number is the largest, and stays. */
static inline double pl_worse(double worst, double error) { return error <= worst || worst != worst ? worst : error; }

/* 32 random bits of a position, cheap, and vectorised by compilers (lowbias32: C. Wellons, Prospecting for hash functions,
 * 2018).  Data made of them have no period, so that a loop that reads some of them twice and others never is found. */
static inline uint32_t pl_mix(uint64_t i)
{
    uint32_t z = (uint32_t)i ^ (uint32_t)(i >> 32) * 0x9E3779B9u;
    z = (z ^ z >> 16) * 0x7FEB352Du;
    z = (z ^ z >> 15) * 0x846CA68Bu;
    return z ^ z >> 16;
}

/* Element i of data that are summed: an odd whole number of at most 2^23, of either sign.  Sums of n of them are about
 * 2^22 sqrt(n): exact in any order for whatever a memory holds, and not the same without any one of them. */
static inline double pl_value(uint64_t i) { return (double)((int)(pl_mix(i) >> 8 | 1) - (1 << 23)); }

/* What a pass of a reduction leaves of one thread's part, a line apart. */
typedef struct { double value; unsigned char apart[PL_LINE - 8]; } pl_result;

pl_result *pl_results_create(void);     /* of as many threads as any case may have; to be freed */
void pl_results_poison(pl_result *);

/* Whether this CPU has an instruction set of the names used in pl_variant. */
bool pl_cpu_has(const char *isa);

/* The loop is the subject: forbid what would turn it into something else. */
#if defined(__clang__)
#define PL_NOVEC_FUNCTION
#define PL_NOVEC_LOOP _Pragma("clang loop vectorize(disable) interleave(disable)")
#elif defined(__NVCOMPILER)     /* calls itself GNU C, and has no such attribute */
#define PL_NOVEC_FUNCTION
#define PL_NOVEC_LOOP _Pragma("loop novector")
#else
#define PL_NOVEC_FUNCTION __attribute__((optimize("no-tree-vectorize")))
#define PL_NOVEC_LOOP
#endif

/* Inside a loop that stores a constant or copies: keeps compilers from calling memset or memcpy instead, which switch
 * to non-temporal stores at a size of their own. */
#define PL_KEEP_LOOP() __asm__ volatile("" : : : "memory")

/* A double that is used: the compiler may not remove what made it.  In a register; its class has another name on each machine. */
#if defined(__x86_64__)
#define PL_IN_REGISTER "x"
#elif defined(__aarch64__)
#define PL_IN_REGISTER "w"
#elif defined(__powerpc64__)
#define PL_IN_REGISTER "d"
#elif defined(__riscv)
#define PL_IN_REGISTER "f"
#else
#define PL_IN_REGISTER "g"
#endif
#define PL_CONSUME(x) __asm__ volatile("" : : PL_IN_REGISTER(x) : "memory")

#endif
