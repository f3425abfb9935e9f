/* What the files of libplumbline_pack share.  The way of a message:
 *
 *     send.c, receive.c, persistent.c   the wrapped calls
 *       -> message.c                    worth packing here?  R_p against T_p, and why not
 *            -> types.c                 the layout of a datatype, kept as its attribute
 *                 -> flatten.c          datatype -> nested strided loops, by MPI's own decoder
 *                      -> nodes.c       their normal form
 *       -> pool.c                       a buffer
 *       -> move.c                       packs, unpacks: loops interchanged and blocked
 *            -> tiles.c, tiles_x86.c    transposes of small blocks in registers
 *     requests.c, complete.c            who waits for what, and what is to be done then
 *     start.c, settings.c               MPI_Init, MPI_Finalize, environment, the report
 */
#ifndef PLUMBLINE_PACK_INTERNAL_H
#define PLUMBLINE_PACK_INTERNAL_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "family.h"

#pragma GCC visibility push(hidden)     /* of all that follows: only what stands before MPI's functions is seen from outside */

enum { PACK_LINE = 64, PACK_DIMS = 8 };

/* --- settings.c -------------------------------------------------------------------------------------------------- */

typedef enum { PACK_PORTABLE, PACK_AVX2, PACK_AVX512 } pack_isa;

typedef struct {
    pack_isa isa;           /* the widest instructions that are used, where the CPU has them */
    size_t page;            /* bytes of a page, P_s */
    size_t tlb;             /* entries of the TLB, T_p */
    size_t least;           /* bytes of the smallest message that is packed here */
    size_t memory;          /* bytes that all packing buffers of a process have together, at most */
    size_t first_cache;     /* bytes of the first-level data cache */
    size_t cache;           /* bytes of the largest message whose packed form is kept in the caches */
    bool report;
} pack_settings;
extern pack_settings pack_set;
void pack_settings_read(void);

/* --- start.c ----------------------------------------------------------------------------------------------------- */

extern bool pack_active;        /* between MPI_Init and MPI_Finalize */
extern bool pack_threaded;      /* MPI_THREAD_MULTIPLE */
void pack_lock(void);           /* of all tables; nothing unless MPI_THREAD_MULTIPLE */
void pack_unlock(void);

/* --- nodes.c: the layout of a datatype --------------------------------------------------------------------------- */

/* One loop.  Iteration i is i * step bytes further in user memory, or at[i] where there is a table (step is then the mean
 * distance), and i * packed bytes further in the packed buffer. */
typedef struct {
    size_t n;
    ptrdiff_t step;
    const ptrdiff_t *at;
    size_t packed;
} pack_dim;

typedef struct pack_node pack_node;
typedef struct { ptrdiff_t offset; const pack_node *node; } pack_part;      /* node NULL: nothing at all */

struct pack_node {
    enum { PACK_NEST, PACK_LOOP, PACK_LIST } kind;
    size_t bytes;                       /* packed */
    size_t count;                       /* LOOP: iterations; LIST: parts */
    union {
        struct {                        /* NEST: loops around one contiguous block, the outermost first */
            size_t block;
            int dims;
            pack_dim dim[PACK_DIMS + 1];    /* one more: what surrounds a whole type, in pack_message */
        };
        struct { ptrdiff_t step; pack_part body; };                     /* LOOP: around what is no nest */
        struct { const pack_part *part; const size_t *packed; };        /* LIST: one after the other */
    };
};

/* Memory of the nodes of one layout, given back in one go; and what was found out about all that went into it. */
typedef struct {
    struct pack_chunk *chunks;
    size_t used, allowed;
    bool exhausted;
    size_t element;         /* bytes of the basic elements */
    bool mixed;             /* they are not all of one length, or of none that is a power of two */
} pack_arena;
void *pack_arena_get(pack_arena *, size_t bytes);       /* NULL, and exhausted: no more allowed */
void pack_arena_free(pack_arena *);

pack_part pack_block(pack_arena *, size_t bytes);
pack_part pack_loop(pack_arena *, pack_part body, size_t n, ptrdiff_t step);
pack_part pack_list(pack_arena *, pack_part *parts, size_t n);              /* overwrites parts */

/* --- flatten.c, types.c ------------------------------------------------------------------------------------------ */

typedef struct pack_layout pack_layout;
struct pack_layout {
    MPI_Datatype type;
    pack_part whole;            /* of one item; an empty one where not understood or nothing */
    bool understood;
    ptrdiff_t extent;
    pack_arena arena;
    int users;                  /* the attribute, and the requests under way */
    pack_layout *before, *after;
};

bool pack_flatten(MPI_Datatype, pack_arena *, pack_part *whole);    /* false: holds what is not understood */
bool pack_is_plain(MPI_Datatype);               /* one of the usual predefined ones: a look, without asking MPI */
pack_layout *pack_layout_of(MPI_Datatype);      /* NULL: none can be had; the caller is one of its users: */
void pack_layout_release(pack_layout *);
void pack_types_start(void);
void pack_types_stop(void);

/* --- pool.c ------------------------------------------------------------------------------------------------------ */

typedef struct pack_buffer pack_buffer;
struct pack_buffer { char *at; size_t bytes; pack_buffer *next; };
pack_buffer *pack_pool_get(size_t bytes);       /* NULL: more than all buffers may have together */
void pack_pool_put(pack_buffer *);
void pack_pool_stop(void);

/* --- message.c --------------------------------------------------------------------------------------------------- */

/* `count` items of a datatype at a user's address. */
typedef struct {
    pack_layout *layout;
    char *user;
    int count;
    int bytes;                  /* packed */
    pack_buffer *buffer;
} pack_message;

typedef enum {
    PACK_DONE, PACK_SMALL, PACK_CONTIGUOUS, PACK_IN_ORDER, PACK_FEW_PAGES, PACK_LONG_BLOCKS, PACK_IN_CACHE, PACK_UNKNOWN,
    PACK_MIXED, PACK_LARGE, PACK_NO_MEMORY, PACK_REASONS
} pack_reason;
typedef enum { PACK_SEND, PACK_RECEIVE } pack_side;

/* Whether the message is packed here: then *m describes it, with a buffer, until pack_message_done(). */
bool pack_wanted(pack_message *m, pack_side, const void *user, int count, MPI_Datatype, int peer);
void pack_gather(const pack_message *);                     /* user memory -> buffer */
void pack_scatter(const pack_message *, size_t bytes);      /* the first bytes of the buffer -> user memory */
void pack_message_done(pack_message *);
void pack_report(int rank);

#define INLINE static inline __attribute__((always_inline))
static inline size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* --- move.c, tiles.c --------------------------------------------------------------------------------------------- */

/* Copies between user memory and the packed buffer: the first `bytes` of the node's packed form. */
void pack_move(const pack_node *, char *user, char *packed, size_t bytes, bool unpack);

/* Rows of contiguous elements. */
typedef struct { char *base; ptrdiff_t step; const ptrdiff_t *at; } pack_rows;
static inline char *pack_row(const pack_rows *rows, size_t i)
{
    return (char *)((uintptr_t)rows->base + (uintptr_t)(rows->at ? rows->at[i] : (ptrdiff_t)i * rows->step));
}

/* out[j][i] = in[i][j] for i < n_in, j < n_out, elements of `block` bytes; with stores that bypass the caches, which suits what
 * is too large for them.  In registers: about `height` rows of in at a time, a multiple of 16.  False: blocks too long for it
 * to be of use. */
bool pack_transpose(size_t block, const pack_rows *in, size_t n_in, const pack_rows *out, size_t n_out, bool bypass);
#if defined(__x86_64__)
void pack_transpose_16_sse2(const pack_rows *in, size_t n_in, const pack_rows *out, size_t n_out, size_t height, bool bypass);
void pack_transpose_8_avx512(const pack_rows *in, size_t n_in, const pack_rows *out, size_t n_out, size_t height, bool bypass);
void pack_transpose_8_avx2(const pack_rows *in, size_t n_in, const pack_rows *out, size_t n_out, size_t height, bool bypass);
void pack_transpose_4_avx2(const pack_rows *in, size_t n_in, const pack_rows *out, size_t n_out, size_t height, bool bypass);
#endif

/* --- requests.c -------------------------------------------------------------------------------------------------- */

typedef struct pack_request pack_request;
struct pack_request {
    MPI_Request handle;
    pack_message message;
    pack_side side;
    bool persistent;
    bool active;                /* started, and not yet found complete */
    bool scattered;             /* complete by MPI_Request_get_status: the data are in place already */
    pack_request *next;
};

bool pack_any_request(void);                            /* whether there is any at all: a quick look */
pack_request *pack_request_new(void);
void pack_begun(const pack_message *, pack_side, int error, MPI_Request);   /* MPI has the message; or has refused it */
void pack_track(pack_request *);                        /* into the table */
pack_request *pack_find(MPI_Request);                   /* stays in the table; NULL: not one of ours */
pack_request *pack_take(MPI_Request);                   /* out of the table, before MPI may complete it; likewise */
void pack_arrived(pack_request *, MPI_Status *, int error);     /* complete: a receive's data go to their place */
void pack_complete(pack_request *, MPI_Status *, int error);    /* taken, and complete: what is due then */
void pack_finish(pack_request *);                       /* taken, and MPI's no more */
void pack_orphan(pack_request *);                       /* taken, and freed by the user while under way */
void pack_orphans(bool wait);                           /* completes those that are ready, or all */

#pragma GCC visibility pop

#endif
