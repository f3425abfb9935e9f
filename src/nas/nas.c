/* The glue of a kernel and the runtime: its data, given anew before each pass; its variants, a loop by each set of options. */
#include <math.h>

#include "nas.h"

/* sets.h, which the build writes, has NAS_SET(name, flags) of each set that the compiler takes, and NAS_REFUSED(name, reason). */
#define GLUED(kernel, source, set) kernel##_##source##_##set
#define FUNCTION(kernel, source, set) GLUED(kernel, source, set)
typedef void nas_loop(double *, double *, double *, double *);     /* a loop of fewer arrays leaves the last ones alone */

#define NAS_SET(set, flags) nas_loop FUNCTION(NAS_KERNEL, unchanged, set);
#define NAS_REFUSED(set, reason)
#include "sets.h"
#undef NAS_SET
#ifdef NAS_OPTIMISED
#define NAS_SET(set, flags) nas_loop FUNCTION(NAS_KERNEL, optimised, set);
#include "sets.h"
#undef NAS_SET
#endif
#undef NAS_REFUSED

enum { UNCHANGED, OPTIMISED };      /* layouts */

#define VARIANT(source, set, number, given)                                                                  \
    {#source "_" #set, .loop = (pl_loop)FUNCTION(NAS_KERNEL, source, set), .layout = number, .about = given, \
     .compiler = PL_FORTRAN_COMPILER, .flags = given},
#define NAS_REFUSED(set, reason) {"unchanged_" #set, .about = reason},
static const pl_variant variants[] = {
#define NAS_SET(set, flags) VARIANT(unchanged, set, UNCHANGED, flags)
#include "sets.h"
#undef NAS_SET
#undef NAS_REFUSED
#define NAS_REFUSED(set, reason)
#ifdef NAS_OPTIMISED
#define NAS_SET(set, flags) VARIANT(optimised, set, OPTIMISED, flags)
#include "sets.h"
#undef NAS_SET
#endif
    {0},
};
#undef NAS_REFUSED

/* The sets that the compiler does not take, and what it says: for the record. */
static const pl_fact refused[] = {
#define NAS_SET(set, flags)
#define NAS_REFUSED(set, reason) {.name = "refused." #set, .text = reason},
#include "sets.h"
#undef NAS_SET
#undef NAS_REFUSED
    {0},
};
_Static_assert(sizeof refused / sizeof *refused <= PL_MAX_FACTS, "more sets of options are refused than a record has facts: leave some out");

static bool is_optimised(const pl_case *c) { return c->variant->layout == OPTIMISED; }

static size_t elements(const pl_case *c)
{
    size_t sum = 0;
    for (int i = 0; i < NAS_ARRAYS; i++)
        sum += nas.doubles[i];
    return sum;
}

static size_t footprint(const pl_case *c) { return elements(c) * sizeof(double); }

/* What the loop works on, and what it is given: a copy for each pass. */
static void *create(const pl_case *c)
{
    size_t bytes[2 * NAS_ARRAYS];
    for (int i = 0; i < NAS_ARRAYS; i++)
        bytes[i] = bytes[NAS_ARRAYS + i] = nas.doubles[i] * sizeof(double);
    return pl_buffers_create(c, 2 * NAS_ARRAYS, bytes, NULL);
}

static double *const *arrays(const pl_case *c) { return (double *const *)((pl_buffers *)c->data)->at; }
static double *const *given(const pl_case *c) { return arrays(c) + NAS_ARRAYS; }

static void prepare(const pl_case *c)
{
    for (int i = 0; i < NAS_ARRAYS; i++)
        memcpy(arrays(c)[i], given(c)[i], nas.doubles[i] * sizeof(double));
}

static void touch(const pl_case *c, int thread, int threads)
{
    for (int i = 0; i < NAS_ARRAYS; i++)
        for (size_t k = 0; k < nas.doubles[i]; k++)
            given(c)[i][k] = NAN;
    nas.fill(is_optimised(c), given(c));
    prepare(c);
}

static void plan(const pl_case *c, pl_plan *p)
{
    for (int i = 0; i < NAS_ARRAYS; i++)
        p->at[i] = arrays(c)[i];
}

static void run(const pl_case *c, const pl_plan *p) { ((nas_loop *)p->loop)(p->at[0], p->at[1], p->at[2], p->at[3]); }

static pl_work work(const pl_case *c) { return (pl_work){.flops = nas.flops, .source = "operations counted by hand; no limit by traffic"}; }

static double verify(const pl_case *c) { return nas.error(is_optimised(c), given(c), arrays(c)); }

static double tolerance(const pl_case *c) { return nas.tolerance; }

static void facts(const pl_case *c, pl_fact *found) { memcpy(found, refused, sizeof refused); }

double nas_stream(double along, double across)
{
    const double x = sin(along / 2), y = sinh(across / 2);
    return log(4 * (x * x + y * y));
}

int main(int argc, char **argv)
{
    const pl_kernel kernel = {
        .name = nas.name, .title = nas.title, .variants = variants, .most_threads = 1, .elements = elements, .footprint = footprint,
        .create = create, .touch = touch, .prepare = prepare, .plan = plan, .run = run, .work = work, .verify = verify,
        .tolerance = tolerance, .facts = facts, .buffers = pl_data_buffers, .destroy = pl_buffers_destroy,
    };
    return pl_main(argc, argv, &kernel);
}
