#include "app.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../harness/plumbline.h"

#ifdef PLUMBLINE_SIMULATED
#include <simgrid/actor.h>
#include <smpi/smpi.h>
#endif

enum { SUM_TAG = 32000 };

double app_seconds(void) { return pl_now(); }

void app_open(app *a, MPI_Comm world)
{
    *a = (app){.world = world};
    MPI_Comm_rank(world, &a->rank);
    MPI_Comm_size(world, &a->ranks);
}

bool app_open_first(app *a, MPI_Comm all, int working)
{
    int rank;
    MPI_Comm world;
    MPI_Comm_rank(all, &rank);
    MPI_Comm_split(all, rank < working ? 0 : MPI_UNDEFINED, rank, &world);
    if (world == MPI_COMM_NULL)
        return false;
    app_open(a, world);
    return true;
}

void app_close(app *a) { MPI_Comm_free(&a->world); }

void app_reset(app *a)
{
    *a = (app){.world = a->world, .rank = a->rank, .ranks = a->ranks, .simulated = a->simulated};
}

double app_communication(app *a)
{
    const double seconds = a->communication;
    a->communication = 0;
    return seconds;
}

double app_communication_among(app *a, int all) { return a->ranks ? app_communication(a) * all / a->ranks : 0; }

void app_end(app *a, double began) { a->communication += app_seconds() - began; }

void app_count(app *a, size_t n)
{
    const double bytes = (double)(n * sizeof(double));
    a->messages++;
    a->bytes += bytes;
    if (n <= APP_MOST_SUMS) {
        a->words++;
        return;
    }
    if (a->shortest == 0 || bytes < a->shortest)
        a->shortest = bytes;
    if (bytes > a->longest)
        a->longest = bytes;
}

/* --- communication ---------------------------------------------------------------------------------------------- */

/* Of communication; natively none. */
static void pass_time(app *a, double seconds)
{
#ifdef PLUMBLINE_SIMULATED
    if (seconds > 0) {
        sg_actor_sleep_for(seconds);
        a->communication += seconds;
    }
#endif
}

static void spoil(const app *a, double *into, size_t n)
{
    for (size_t i = 0; a->proving && i < n; i++)
        into[i] = NAN;
}

void app_send(app *a, MPI_Comm comm, const double *from, size_t n, int to, int tag)
{
    pass_time(a, a->simulated.delay);
    const double began = app_seconds();
    MPI_Send(from, (int)n, MPI_DOUBLE, to, tag, comm);
    app_count(a, n);
    app_end(a, began);
}

void app_receive(app *a, MPI_Comm comm, double *into, size_t n, int from, int tag)
{
    const double began = app_seconds();
    spoil(a, into, n);
    MPI_Recv(into, (int)n, MPI_DOUBLE, from, tag, comm, MPI_STATUS_IGNORE);
    app_end(a, began);
}

void app_exchange(app *a, MPI_Comm comm, const double *from, size_t n, int to, double *into, size_t m, int source, int tag)
{
    pass_time(a, a->simulated.delay);
    const double began = app_seconds();
    spoil(a, into, m);
    MPI_Sendrecv(from, (int)n, MPI_DOUBLE, to, tag, into, (int)m, MPI_DOUBLE, source, tag, comm, MPI_STATUS_IGNORE);
    app_count(a, n);
    app_end(a, began);
}

void app_start_send(app *a, MPI_Comm comm, const double *from, size_t n, int to, int tag, MPI_Request *request)
{
    pass_time(a, a->simulated.delay);
    const double began = app_seconds();
    MPI_Isend(from, (int)n, MPI_DOUBLE, to, tag, comm, request);
    app_count(a, n);
    app_end(a, began);
}

void app_start_receive(app *a, MPI_Comm comm, double *into, size_t n, int from, int tag, MPI_Request *request)
{
    const double began = app_seconds();
    spoil(a, into, n);
    MPI_Irecv(into, (int)n, MPI_DOUBLE, from, tag, comm, request);
    app_end(a, began);
}

void app_finish(app *a, int count, MPI_Request *request)
{
    const double began = app_seconds();
    MPI_Waitall(count, request, MPI_STATUSES_IGNORE);
    app_end(a, began);
}

void app_copied(app *a, size_t n)
{
    pass_time(a, (double)(n * sizeof(double)) * a->simulated.byte);
}

static void sum(app *a, MPI_Comm comm, double *x, size_t n)
{
    int rank, ranks, power = 1;
    if (n > APP_MOST_SUMS)
        app_fail(a, "app_sum: %zu values at once, at most %d", n, (int)APP_MOST_SUMS);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    while (2 * power <= ranks)
        power *= 2;
    double theirs[APP_MOST_SUMS];
    if (rank >= power) {
        app_send(a, comm, x, n, rank - power, SUM_TAG);
        app_receive(a, comm, x, n, rank - power, SUM_TAG);
        return;
    }
    if (rank + power < ranks) {
        app_receive(a, comm, theirs, n, rank + power, SUM_TAG);
        for (size_t i = 0; i < n; i++)
            x[i] += theirs[i];
    }
    for (int away = 1; away < power; away *= 2) {
        app_exchange(a, comm, x, n, rank ^ away, theirs, n, rank ^ away, SUM_TAG);
        for (size_t i = 0; i < n; i++)      /* a sum of two is the same in either order: so are the bits of all ranks */
            x[i] += theirs[i];
    }
    if (rank + power < ranks)
        app_send(a, comm, x, n, rank + power, SUM_TAG);
}

void app_sum(app *a, MPI_Comm comm, double *x, size_t n)
{
    const double delay = a->simulated.delay;
    pass_time(a, a->simulated.sum_delay);
    a->simulated.delay = 0;
    sum(a, comm, x, n);
    a->simulated.delay = delay;
}

/* --- computation ------------------------------------------------------------------------------------------------ */

void app_compute(app *a, double flops)
{
    a->flops += flops;
#ifdef PLUMBLINE_SIMULATED
    smpi_execute_flops(flops);
#endif
}

/* --- result ------------------------------------------------------------------------------------------------------ */

app_result app_result_of(const app *a, double seconds, double error, double tolerance)
{
    enum { COMMUNICATION, MESSAGES, WORDS, BYTES, FLOPS, SUMS };
    enum { SECONDS, MOST, LEAST, LONGEST, SHORTEST, MOST_FLOPS, ERROR, GREATEST };
    const double never = HUGE_VAL;
    double sum[SUMS] = {a->communication, a->messages, a->words, a->bytes, a->flops};
    /* A least is the greatest of the negative; an error that is not a number counts as infinite. */
    double most[GREATEST] = {seconds, a->communication, -a->communication, a->longest,
                             a->shortest > 0 ? -a->shortest : -never, a->flops, isnan(error) ? never : error};
    MPI_Allreduce(MPI_IN_PLACE, sum, SUMS, MPI_DOUBLE, MPI_SUM, a->world);
    MPI_Allreduce(MPI_IN_PLACE, most, GREATEST, MPI_DOUBLE, MPI_MAX, a->world);
    return (app_result){
        .seconds = most[SECONDS], .communication = sum[COMMUNICATION] / a->ranks,
        .least_communication = -most[LEAST], .most_communication = most[MOST],
        .messages = sum[MESSAGES] / a->ranks, .words = sum[WORDS] / a->ranks, .bytes = sum[BYTES] / a->ranks,
        .shortest = isinf(most[SHORTEST]) ? 0 : -most[SHORTEST], .longest = most[LONGEST],
        .flops = sum[FLOPS] / a->ranks, .most_flops = most[MOST_FLOPS], .error = most[ERROR], .tolerance = tolerance};
}

void app_print(const app *a, const app_result *r, const char *application, const char *size, long iterations)
{
    if (a->rank)
        return;
    char error[32] = "null";    /* JSON has no infinity */
    if (isfinite(r->error))
        snprintf(error, sizeof error, "%.17g", r->error);
    printf("{\"application\": \"%s\", \"size\": \"%s\", \"ranks\": %d, \"iterations\": %ld, \"seconds\": %.17g, "
           "\"communication\": %.17g, \"least_communication\": %.17g, \"most_communication\": %.17g, \"messages\": %.17g, "
           "\"words\": %.17g, \"bytes\": %.17g, \"shortest\": %.17g, \"longest\": %.17g, \"flops\": %.17g, "
           "\"most_flops\": %.17g, \"value\": %.17g, \"error\": %s, \"tolerance\": %.17g, \"valid\": %s}\n",
           application, size, a->ranks, iterations, r->seconds, r->communication, r->least_communication,
           r->most_communication, r->messages, r->words, r->bytes, r->shortest, r->longest, r->flops, r->most_flops, r->value, error,
           r->tolerance, r->error <= r->tolerance ? "true" : "false");
    fflush(stdout);
}

void *app_memory(void *p)
{
    if (!p) {
        fputs("plumbline: not enough memory for the application: give a smaller size, or fewer processes a node\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return p;
}

_Noreturn void app_fail(const app *a, const char *format, ...)
{
    if (a->rank == 0) {
        va_list arguments;
        va_start(arguments, format);
        fputs("plumbline: ", stderr);
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
        va_end(arguments);
    }
    MPI_Finalize();
    exit(2);
}
