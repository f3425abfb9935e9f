/* Sum of an array, read as s streams at once: a line of the first, one of the second, ..., the next of the first.
 *
 * Anderson, Brooks, Grassl, Scott 1997, section 3.2: stream buffers follow six streams, and loops with more lose them.
 * The array is cut in s parts of an odd number of lines: no two parts begin in one set of a cache, as they would at
 * distances of powers of two, so that it is the number of streams that counts. */
#include "kernel.h"

/* The part's lines; 0 where the array is too short for so many streams. */
static size_t lines_of(size_t n, size_t streams)
{
    const size_t lines = n / CONCURRENT_LINE / streams;
    return lines % 2 ? lines : lines ? lines - 1 : 0;
}

/* Partial sums for so many lines of a stream: an addition need not wait for the one of the line before. */
enum { ROUNDS = 4 };
typedef double partial[ROUNDS][CONCURRENT_LINE];

/* Of the partial sums, and of what s parts of an odd number of lines leave over: less than two lines of each stream, and a part
 * of one.  Not within the loops, where compilers would keep the partial sums shuffled as this takes them. */
__attribute__((noinline)) static double total(const double *sum, size_t first, size_t n, const double *restrict x)
{
    double all = 0;
    for (size_t k = 0; k < ROUNDS * CONCURRENT_LINE; k++)
        all += sum[k];
    for (size_t i = first; i < n; i++)
        all += x[i];
    return all;
}

/* Where the number of streams is known, there is no loop over them: one stream is read as any array. */
#define INLINE static inline __attribute__((always_inline))

INLINE void read_lines(size_t streams, size_t part, const double *restrict x, partial sum)
{
    size_t i = 0;
    for (; i + ROUNDS * CONCURRENT_LINE <= part; i += ROUNDS * CONCURRENT_LINE)
        for (size_t r = 0; r < ROUNDS; r++)
            for (size_t s = 0; s < streams; s++)
                for (size_t k = 0; k < CONCURRENT_LINE; k++)
                    sum[r][k] += x[s * part + i + r * CONCURRENT_LINE + k];
    for (; i < part; i += CONCURRENT_LINE)
        for (size_t s = 0; s < streams; s++)
            for (size_t k = 0; k < CONCURRENT_LINE; k++)
                sum[0][k] += x[s * part + i + k];
}

double concurrent_plain(size_t n, const double *restrict x, const long *tuning)
{
    const size_t streams = (size_t)tuning[CONCURRENT_STREAMS];
    const size_t part = CONCURRENT_LINE * lines_of(n, streams);
    partial sum = {0};
    if (streams == 1)
        read_lines(1, part, x, sum);
    else
        read_lines(streams, part, x, sum);
    return total(sum[0], streams * part, n, x);
}

/* prefetch: one software prefetch of each line, `distance` elements of its stream ahead. */
INLINE void read_lines_prefetch(size_t streams, size_t part, size_t ahead, const double *restrict x, partial sum)
{
    size_t i = 0;
    for (; i + ROUNDS * CONCURRENT_LINE <= part; i += ROUNDS * CONCURRENT_LINE)
        for (size_t r = 0; r < ROUNDS; r++) {
            for (size_t s = 0; s < streams; s++)
                __builtin_prefetch(x + s * part + i + r * CONCURRENT_LINE + ahead, 0);
            for (size_t s = 0; s < streams; s++)
                for (size_t k = 0; k < CONCURRENT_LINE; k++)
                    sum[r][k] += x[s * part + i + r * CONCURRENT_LINE + k];
        }
    for (; i < part; i += CONCURRENT_LINE)
        for (size_t s = 0; s < streams; s++)
            for (size_t k = 0; k < CONCURRENT_LINE; k++)
                sum[0][k] += x[s * part + i + k];
}

double concurrent_prefetch(size_t n, const double *restrict x, const long *tuning)
{
    const size_t streams = (size_t)tuning[CONCURRENT_STREAMS], ahead = (size_t)tuning[CONCURRENT_DISTANCE];
    const size_t part = CONCURRENT_LINE * lines_of(n, streams);
    partial sum = {0};
    if (streams == 1)
        read_lines_prefetch(1, part, ahead, x, sum);
    else
        read_lines_prefetch(streams, part, ahead, x, sum);
    return total(sum[0], streams * part, n, x);
}
