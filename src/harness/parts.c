/* How the threads of a team share out the work of a pass. */
#include "internal.h"

pl_range pl_part(size_t n, int thread, int threads)
{
    const size_t t = (size_t)thread, q = n / (size_t)threads, rest = n % (size_t)threads;
    const size_t begin = t * q + (t < rest ? t : rest);
    return (pl_range){begin, begin + q + (t < rest)};
}

pl_range pl_narrow(const pl_case *c, pl_range share)
{
    const size_t length = c->narrowed > 1 ? (share.end - share.begin) / (size_t)c->narrowed : share.end - share.begin;
    return (pl_range){share.begin, share.begin + (length || share.begin == share.end ? length : 1)};
}

int pl_pieces(pl_range part, size_t width, pl_piece piece[PL_PIECES])
{
    int count = 0;
    while (part.begin < part.end) {
        const size_t outer = part.begin / width, begin = part.begin % width, last = part.end / width;
        const size_t end = last > outer ? width : part.end % width, next = begin || last == outer ? outer + 1 : last;
        piece[count++] = (pl_piece){{outer, next}, {begin, end}};
        part.begin = last > outer ? next * width : part.end;
    }
    return count;
}

pl_plan pl_plan_of(const pl_case *c, int thread)
{
    pl_plan p = {.thread = thread, .loop = c->variant->loop, .part = pl_part(c->n, thread, c->threads)};
    if (c->kernel->plan)
        c->kernel->plan(c, &p);
    return p;
}

static double share_of(const pl_case *c, int thread)
{
    const pl_range part = pl_plan_of(c, thread).part;
    return c->kernel->share ? c->kernel->share(c, thread) : (double)(part.end - part.begin);
}

double pl_balance(const pl_case *c)
{
    double sum = 0, largest = 0;
    for (int thread = 0; thread < c->threads; thread++) {
        const double share = share_of(c, thread);
        sum += share;
        largest = share > largest ? share : largest;
    }
    return largest > 0 ? sum / c->threads / largest : 1;
}

double pl_narrowed_to(const pl_case *c)
{
    double done = 0, all = 0;
    pl_case whole = *c;
    whole.narrowed = 0;
    for (int thread = 0; thread < c->threads; thread++) {
        done += share_of(c, thread);
        all += share_of(&whole, thread);
    }
    return done / all;
}
