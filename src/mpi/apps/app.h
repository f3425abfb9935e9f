/* What the mini-applications (cg, sp) share: communication that is timed, computation that is declared.
 *
 * An application is written once.  Natively it computes and communicates, and the layer adds up the seconds that this
 * rank spends in the communication routines, waiting included: what anderson1997 (section 5.3, tables 12 and 13) gives
 * as per cent.  Built with SimGrid's smpicc (PLUMBLINE_SIMULATED), the same source computes and communicates as well, so
 * that its result is proved there too, but time is simulated: a message takes what the platform says, and a computation
 * takes the flops that app_compute() declares over the host's rate; how long this machine takes for it has no influence.
 * The same input then gives the same output to the last digit.
 *
 * Use: app_open(); then only app_... for messages, and app_compute() after (or before) each piece of computation, with its
 * flops by definition; app_result_of() at the end.  No state is global: in a simulation all ranks are one process. */
#ifndef PLUMBLINE_APP_H
#define PLUMBLINE_APP_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

/* What a simulation adds to an application's own routines, s; natively nothing. */
typedef struct {
    double delay;               /* before each message leaves but those of scalar sums: as if the application's routines waited */
    double sum_delay;           /* before each scalar sum, once */
    double byte;                /* to fill or empty a buffer: of each byte */
} app_simulated;

/* One rank of an application, and what it has done since app_open() or app_reset(). */
typedef struct {
    MPI_Comm world;
    int rank, ranks;            /* of world */
    double communication;       /* seconds in communication routines */
    double messages, bytes;     /* sent by this rank */
    double shortest, longest;   /* bytes of a message that is not short; 0: none was sent */
    double words;               /* short messages, of at most APP_MOST_SUMS words (steps of scalar sums), among `messages` */
    double flops;               /* declared */
    bool proving;               /* what a message is received into is made NaN before: none can fail to come unseen */
    app_simulated simulated;
} app;

void app_open(app *, MPI_Comm world);

/* On the first `working` processes of `all`: collective over all of them; false, and nothing opened, on the others. */
bool app_open_first(app *, MPI_Comm all, int working);
void app_close(app *);          /* of app_open_first() */

void app_reset(app *);          /* counts and seconds from 0, untimed */

/* Seconds in communication since the last call of this function or app_reset(); starts again from 0. */
double app_communication(app *);

/* The same, for a mean over `all` processes that is to be the mean of those that work: the others have 0. */
double app_communication_among(app *, int all);

/* --- communication: `n` counts doubles; ranks are those of `comm` ---------------------------------------------- */

void app_send(app *, MPI_Comm comm, const double *from, size_t n, int to, int tag);
void app_receive(app *, MPI_Comm comm, double *into, size_t n, int from, int tag);

/* Sends `n` and receives `m` doubles; the partners may differ. */
void app_exchange(app *, MPI_Comm comm, const double *from, size_t n, int to, double *into, size_t m, int source, int tag);

/* The begin of a transfer, and the end of `count` of them; buffers are not to be touched in between. */
void app_start_send(app *, MPI_Comm comm, const double *from, size_t n, int to, int tag, MPI_Request *);
void app_start_receive(app *, MPI_Comm comm, double *into, size_t n, int from, int tag, MPI_Request *);
void app_finish(app *, int count, MPI_Request *);

/* x[0..n-1] summed over the ranks of comm, by recursive doubling: log2(ranks) messages of n words, to partners 1, 2, 4, ...
 * away; ranks beyond the power of two hand theirs in before and get the sum after.  All ranks get the same bits.  At most
 * APP_MOST_SUMS values. */
enum { APP_MOST_SUMS = 16 };
void app_sum(app *, MPI_Comm comm, double *x, size_t n);

/* `n` doubles were copied into, or out of, the buffer of a message.  Natively free: the copy takes its time itself. */
void app_copied(app *, size_t n);

/* Around communication that none of the above does: app_end(a, app_seconds()) counts its seconds; app_count() a message. */
void app_end(app *, double began);
void app_count(app *, size_t n);

/* --- computation ------------------------------------------------------------------------------------------------ */

/* So much has been computed.  Natively only counted; in a simulation it takes flops / (host's rate). */
void app_compute(app *, double flops);

/* --- result ------------------------------------------------------------------------------------------------------ */

typedef struct {
    double seconds;             /* of the slowest rank */
    double communication;       /* seconds in communication routines, mean over the ranks */
    double least_communication, most_communication;     /* of the ranks */
    double messages, words, bytes;                      /* of a rank, mean; words: short messages */
    double shortest, longest;   /* bytes of a message that is not short, over all ranks; 0: there was none */
    double flops, most_flops;   /* of a rank: mean, greatest */
    double value;               /* the application's own result, such as CG's zeta; the same on all ranks */
    double error, tolerance;    /* against the application's own criterion, greatest over the ranks; right: error <= tolerance */
} app_result;

/* Collective; untimed.  `seconds` and `error` are this rank's. */
app_result app_result_of(const app *, double seconds, double error, double tolerance);

/* One JSON object on one line of standard output: what ran, on how many ranks, how many iterations, the result. */
void app_print(const app *, const app_result *, const char *application, const char *size, long iterations);

/* What src/mpi/simulation/simulated.c needs of an application: one of these each (cg_program in cg/, sp_program in sp/). */
typedef struct {
    const char *name;
    const char *const *sizes;                                       /* "S", "A", ...; ends with NULL */
    void (*refuse)(const app *, const char *size);                  /* app_fail()s on ranks or sizes that cannot be */
    app_result (*run)(app *, const char *size, long iterations);    /* set-up and verification not among its seconds */
} app_program;

void *app_memory(void *);       /* what an allocation returned; one line on standard error, and all ranks end, where that is NULL */

double app_seconds(void);       /* wall clock; simulated time in a simulation */

/* One line on standard error by rank 0, and all ranks end with code 2. */
_Noreturn void app_fail(const app *, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
