/* The traffic of irregular accesses: which of them find their line in a cache is counted, not estimated. */
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

enum { DOUBLES = PL_LINE / sizeof(double), AT_LEAST = 1 << 20 };

size_t gather_lines_below(const pl_case *c) { return pl_cache_below(c) / PL_LINE; }

/* An access brings its line unless the thread's last access to this line is fewer accesses ago than the cache below has
 * lines: least recently used goes first, and nothing else takes room there.  The rows are all alike but for their places,
 * so that after four times as many accesses as that the rest is taken to be as the second half of those. */
static double lines_of(const gather_accesses *a, size_t below, uint32_t *last, uint32_t *now)
{
    const size_t rows = a->last - a->first, enough = a->length ? (4 * below + AT_LEAST) / a->length + 2 : 0;
    const size_t counted = rows < enough ? rows : enough, half = counted / 2;
    double lines = 0, second = 0;
    for (size_t i = 0; i < counted; i++) {
        const size_t begin = a->delta * (a->first + i);
        size_t brought = 0;
        for (size_t j = 0; j < a->length; j++) {
            const size_t line = (begin + (size_t)a->index[a->through ? (size_t)a->through[j] : j]) / DOUBLES;
            brought += !last[line] || *now - last[line] >= below;
            last[line] = (*now)++;
        }
        lines += (double)brought;
        second += i < half ? 0 : (double)brought;
    }
    return counted < rows ? lines + (double)(rows - counted) * second / (double)(counted - half) : lines;
}

double gather_lines(const pl_case *c, size_t elements, gather_accesses (*of_thread)(const pl_case *, int thread))
{
    const size_t below = gather_lines_below(c), bytes = (elements / DOUBLES + 1) * sizeof(uint32_t);
    uint32_t *const last = pl_allocate(bytes, "the count of the lines");
    uint32_t now = 1;
    double lines = 0;
    for (int thread = 0; thread < c->threads; thread++) {
        const gather_accesses a = of_thread(c, thread);
        lines += lines_of(&a, below, last, &now);
        now += (uint32_t)below;     /* the next thread has a cache of its own */
        if (now > UINT32_MAX / 2) {
            memset(last, 0, bytes);
            now = 1;
        }
    }
    free(last);
    return lines;
}
