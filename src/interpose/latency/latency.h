/* What the files of libplumbline_latency share.  The model is LogGP with its terms set one by one (Martin, Vahdat, Culler,
 * Anderson, ISCA 1997): latency L, overhead o, gap g; README.rst beside this file says what each of them does.
 *
 *     point.c, persistent.c, probe.c    the wrapped calls of messages
 *       -> outgoing.c, message.c, probed.c   a message's stamp: sent beside it, matched with it, and when it may be seen
 *            -> comm.c                  the communicators that stamps travel on
 *     complete.c                        Wait and Test, all of them
 *       -> request.c                    the operations under way, by their requests
 *     collective.c -> steps.c, entered.c   the collectives: how many steps, and whose entry their result depends on
 *     generalized.c                     the program's own requests, which are only known
 *     passed.c                          what is passed through, and counted
 *     start.c, report.c, switch.c       above all of these
 *     settings.c, lock.c, clock.c, times.c   below; no file uses one that uses it
 */
#ifndef PLUMBLINE_LATENCY_H
#define PLUMBLINE_LATENCY_H

/* Of all names, only MPI's are seen from outside. */
#pragma GCC visibility push(default)
#include <mpi.h>

/* Calls of MPI 4 but those with counts beyond int: Open MPI 5 has them, and says that it is of MPI 3.1. */
#if MPI_VERSION >= 4
#define LAT_CALLS_OF_4 1
#elif defined OMPI_MAJOR_VERSION
#define LAT_CALLS_OF_4 (OMPI_MAJOR_VERSION >= 5)
#else
#define LAT_CALLS_OF_4 0
#endif
#pragma GCC visibility pop
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int64_t ns;     /* nanoseconds */

#define BARE(...) __VA_ARGS__   /* BARE (a, b): parameters or arguments without their parentheses, for a list that has more */

enum { NEVER_SEEN = -1 };
#define NOT_YET INT64_MAX

/* --- settings.c, lock.c ------------------------------------------------------------------------------------------- */

typedef struct {
    ns latency, overhead, gap;
    bool on;                /* between MPI_Init and MPI_Finalize, and not all three are 0 */
    bool stamped;           /* messages are stamped: L > 0 or g > 0 */
    bool shadowed;          /* they were at the start: communicators have their shadows, whatever L is now */
    bool report;
    bool threads;           /* MPI_THREAD_MULTIPLE */
} lat_settings;
extern lat_settings lat_set;

void lat_read_settings(void);       /* after PMPI_Init, collective; exits with one line where they are no good */
_Noreturn void lat_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));   /* after MPI_Init: ends all */
void *lat_allocate(size_t bytes);
void lat_lock(void);                /* of all tables; nothing unless MPI_THREAD_MULTIPLE */
void lat_unlock(void);
void lat_give_way(void);            /* inside a loop that waits, with the lock held: other threads may go on */

/* --- clock.c ------------------------------------------------------------------------------------------------------ */

ns lat_now(void);                   /* on rank 0's clock */
void lat_clock_start(void);         /* collective */
void lat_clock_stop(void);
ns lat_clock_error(void);           /* how far it may be off rank 0's, at most, at the start */
void lat_busy(ns);                  /* occupies the CPU */
void lat_progress(void);            /* lets the MPI go on with its own work */
void lat_pass_time(ns left);        /* one turn of a loop that waits for a moment, with the lock held */
void lat_wait_until(ns);            /* without the lock */

/* --- comm.c ------------------------------------------------------------------------------------------------------- */

typedef struct lat_pending lat_pending;

/* What is known of a communicator.  shadow: where its stamps travel; MPI_COMM_NULL after it was freed. */
typedef struct {
    MPI_Comm shadow;
    int rank, size;
    bool inter;
    lat_pending *first, *last;      /* receives in the order in which they were posted, until their stamps are asked for */
    lat_pending *probed;            /* messages that a probe has seen and no receive has got */
    struct { int source, tag; ns at; } missed;      /* the last probe that has found nothing */
    bool closed;
    int users;                      /* operations that know it */
} lat_comm;

void lat_comm_start(void);
void lat_comm_stop(void);
lat_comm *lat_comm_of(MPI_Comm);    /* with the lock; NULL: its messages are passed through */
lat_comm *lat_look_up(MPI_Comm);    /* the same without the lock */
void lat_comm_duplicated(lat_pending *);

/* --- message.c ---------------------------------------------------------------------------------------------------- */

typedef struct { ns sent, delay; } lat_stamp;   /* when, and how long the network keeps it beyond its own time */

typedef enum { LAT_RECEIVE, LAT_MATCHED, LAT_SYNCHRONOUS, LAT_COLLECTIVE, LAT_SEND, LAT_DUPLICATE, LAT_PLAIN } lat_kind;

/* An operation under way, or a persistent one. */
struct lat_pending {
    lat_kind kind;
    bool persistent, active;
    bool arrived, cancelled;        /* the MPI has it complete */
    bool asked, known;              /* for its stamp; the stamp is here */
    bool delivered;                 /* the program has it: only its stamp is missing */
    bool orphan;                    /* MPI_Request_free: there is nobody to deliver it to */
    bool watched;                   /* looked for without a pause when it came */
    bool taken;                     /* by the call that is completing it */
    bool linked;                    /* in its communicator's list of receives */
    MPI_Request request, handle;    /* the MPI's, NULL once it is completed; the program's, under which it stands in the table */
    lat_comm *comm;
    int source, tag;                /* as posted; of an arrived message: its own.  Of a send: destination */
    int64_t bytes;                  /* of a message that has arrived, or of a send */
    struct { int source, tag; bool synchronous; int64_t bytes; } posted;    /* of a persistent request, for its next use */
    uint64_t order;                 /* of posting */
    ns absent, arrival;             /* it was not there yet; it was there.  NEVER_SEEN: no such moment is known */
    lat_stamp stamp;
    MPI_Request shadow;
    lat_pending *carrier;           /* the probed message whose stamp it has */
    lat_pending *next, *previous;   /* in its communicator's list, or among the ghosts */
    lat_pending *chain;             /* in the table of requests */
    struct lat_collective *collective;
    bool stored;                    /* it is completed when it has arrived, and its status kept here until it may be seen */
    bool completed;
    MPI_Status status;
    int error;
    MPI_Request out;                /* of MPI_Isendrecv: its other half, and the copy that is sent */
    void *copy;
    MPI_Comm *made, made_shadow;    /* LAT_DUPLICATE */
};

/* A message on its way out: begin it, start it by the MPI's own call, end it. */
typedef struct { lat_comm *comm; int to, tag; lat_stamp stamp; bool stamped; } lat_outgoing;
bool lat_depart(lat_outgoing *, MPI_Comm, int to, int tag);     /* o; then with the lock, until lat_departed */
bool lat_load(lat_outgoing *, lat_comm *, int to, int tag);     /* the same without o, the lock held already */
void lat_departed(lat_outgoing *, int error);

void lat_link(lat_pending *);       /* a receive is posted, or a persistent one started */
void lat_poll(lat_pending *);       /* ask the MPI whether it is complete */
ns lat_visible(lat_pending *);      /* when the program may see it; NOT_YET: nothing is known yet */
ns lat_left(lat_pending *);         /* both: time until then; <= 0: now */
void lat_drop_lists(lat_comm *);    /* the communicator goes */
void lat_settle(lat_comm *);        /* asks for the stamps of all that have arrived, as far as their order is known */
void lat_release(lat_pending *);    /* the program has it */
void lat_discard(lat_pending *);    /* nobody waits for it any more; its stamp may still have to be received */
lat_pending *lat_probed(lat_comm *, const MPI_Status *, ns absent);
ns lat_probe_missed(ns begin);      /* a probe has found nothing; since when nothing was there, or NEVER_SEEN */
void lat_take_probed(lat_comm *, lat_pending *);
void lat_reap(bool all);            /* stamps of messages that the program has got already */
void lat_outgoing_stop(void);

/* --- times.c ------------------------------------------------------------------------------------------------------ */

/* Least time that the MPI takes, as seen so far, by kind and size of message; 0: never seen. */
enum { LAT_TIME_MESSAGE, LAT_TIME_ACKNOWLEDGED, LAT_TIME_COLLECTIVE };
ns lat_least_time(int kind, int64_t bytes);
void lat_learn_time(int kind, int64_t bytes, ns);

/* --- request.c ---------------------------------------------------------------------------------------------------- */

lat_pending *lat_new(lat_kind, lat_comm *);
void lat_free(lat_pending *);
void lat_let_go(lat_comm *);                /* memory of a communicator that was freed, once nothing is under way on it */
void lat_enter(lat_pending *);              /* into the table, under its request */
void lat_remove(lat_pending *);
lat_pending *lat_find(MPI_Request);         /* NULL: none of ours */
lat_pending *lat_delayed(MPI_Request);      /* the same, and it is under way and not to be left to the MPI alone */

int64_t lat_bytes(int64_t count, MPI_Datatype);

/* --- generalized.c ------------------------------------------------------------------------------------------------ */

bool lat_is_generalized(MPI_Request);

/* --- complete.c --------------------------------------------------------------------------------------------------- */

int lat_complete(lat_pending *, MPI_Request *, MPI_Status *);   /* one that may be seen; with the lock */
int lat_await(lat_pending *, MPI_Request *, MPI_Status *);      /* waits until then; without the lock */
ns lat_overhead_of(const lat_pending *);                        /* o that is due when it is delivered */

/* --- steps.c ------------------------------------------------------------------------------------------------------ */

typedef enum {
    LAT_BARRIER, LAT_BCAST, LAT_REDUCE, LAT_ALLREDUCE, LAT_GATHER, LAT_GATHERV, LAT_SCATTER, LAT_SCATTERV, LAT_ALLGATHER,
    LAT_ALLTOALL, LAT_ALLTOALLV, LAT_REDUCE_SCATTER, LAT_SCAN, LAT_NEIGHBORS, LAT_COLLECTIVES
} lat_shape;

/* Whose entry a rank's result depends on. */
typedef enum { LAT_NOBODY, LAT_ALL, LAT_ROOT, LAT_OTHERS, LAT_LOWER, LAT_AROUND } lat_depends;

typedef struct {
    int steps;              /* of L, one after the other, before this rank has its result */
    int between;            /* of o on other ranks, that this one waits for */
    int sends, receives;    /* of o on this rank */
    lat_depends depends;    /* NOBODY: this rank waits for none */
} lat_plan;

/* Pure.  bytes: of the whole operation as steps.c says; relative: rank's distance from the root, 0 where there is none. */
lat_plan lat_steps(lat_shape, int size, int relative, int64_t bytes);

/* --- entered.c ---------------------------------------------------------------------------------------------------- */

ns lat_collective_visible(lat_pending *);
int lat_collective_receives(const lat_pending *);

/* --- report.c, passed.c ------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t sent, received, synchronous, unstamped, collectives, steps, foreign, foreign_collectives;
    int64_t waited;         /* ns, of blocking and non-blocking waits for what had arrived already */
    int64_t queued;         /* ns that g has kept messages back */
} lat_counts;
extern lat_counts lat_count;
void lat_report(void);      /* collective */
int lat_passed_kinds(void);
const char *lat_passed_name(int kind);
int64_t lat_passed_count(int kind);

#endif
