/* A kernel that counts its passes: complains where a sample had another number of them on any thread than its record says. */
#include <stdio.h>
#include <stdlib.h>

#include "plumbline.h"

enum { MOST_THREADS = 64, MOST_SAMPLES = 100 };
static long passes_of[MOST_THREADS], seen[MOST_SAMPLES][MOST_THREADS];

static size_t footprint(const pl_case *c) { return c->n; }
static void *create(const pl_case *c) { return pl_allocate(c->n, "nothing"); }
static void touch(const pl_case *c, int thread, int threads) { (void)c, (void)thread, (void)threads; }
static void plan(const pl_case *c, pl_plan *p) { (void)c, passes_of[p->thread] = 0; }
static pl_work work(const pl_case *c) { return (pl_work){.load_bytes = (double)c->n, .source = "none"}; }

static void run(const pl_case *c, const pl_plan *p)
{
    (void)c;
    for (volatile int i = 0; i < 100;)
        i = i + 1;
    passes_of[p->thread]++;
}

static double verify(const pl_case *c)
{
    double wrong = 0;
    for (int thread = 0; thread < c->threads; thread++)
        wrong += passes_of[thread] != 1;
    return wrong;
}

static void sampled(const pl_case *c, int sample, double *row) { (void)c, (void)row, memcpy(seen[sample], passes_of, sizeof passes_of); }

static void further(const pl_case *c, const double *rows, long passes, int samples, FILE *f)
{
    (void)rows, (void)f;
    for (int sample = 0; sample < samples; sample++)
        for (int thread = 0; thread < c->threads; thread++)
            if (seen[sample][thread] != passes)
                fprintf(stderr, "sample %d, thread %d: %ld passes, not %ld\n", sample, thread, seen[sample][thread], passes);
}

int main(int argc, char **argv)
{
    static const pl_variant variants[] = {
        {"plain", .loop = (pl_loop)run, .about = "counts"}, {"elsewhere", .loop = (pl_loop)run, .isa = "none", .about = "on no processor"}, {0}};
    static const pl_kernel counting = {
        .name = "counting", .title = "counts its passes", .variants = variants, .footprint = footprint, .create = create,
        .touch = touch, .plan = plan, .run = run, .work = work, .verify = verify,
        .destroy = free, .sampled = sampled, .further = further,
    };
    return pl_main(argc, argv, &counting);
}
