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

/* Partial sums: of one stream, of several lines, so that an addition need not wait for the one of the line before. */
enum { SUMS = 4 * CONCURRENT_LINE };

/* Of the partial sums, and of what the streams leave over: less than two lines of each, and a part of one.  Not within the
 * loops, where compilers would keep the partial sums shuffled as this takes them. */
__attribute__((noinline)) static double total(const double *sum, size_t sums, size_t first, size_t n,
                                              const double *restrict x)
{
    double all = 0;
    for (size_t k = 0; k < sums; k++)
        all += sum[k];
    for (size_t i = first; i < n; i++)
        all += x[i];
    return all;
}

double concurrent_plain(size_t n, const double *restrict x, const long *parameters)
{
    const size_t streams = (size_t)parameters[CONCURRENT_STREAMS];
    const size_t part = CONCURRENT_LINE * lines_of(n, streams);
    double sum[SUMS] = {0};
    size_t i = 0;
    if (streams == 1) {
        for (; i + SUMS <= n; i += SUMS)
            for (size_t k = 0; k < SUMS; k++)
                sum[k] += x[i + k];
        return total(sum, SUMS, i, n, x);
    }
    for (; i < part; i += CONCURRENT_LINE)
        for (size_t s = 0; s < streams; s++)
            for (size_t k = 0; k < CONCURRENT_LINE; k++)
                sum[k] += x[s * part + i + k];
    return total(sum, CONCURRENT_LINE, streams * part, n, x);
}

/* prefetch: one software prefetch of each line, `distance` elements of its stream ahead. */
double concurrent_prefetch(size_t n, const double *restrict x, const long *parameters)
{
    const size_t streams = (size_t)parameters[CONCURRENT_STREAMS], ahead = (size_t)parameters[CONCURRENT_DISTANCE];
    const size_t part = CONCURRENT_LINE * lines_of(n, streams);
    double sum[SUMS] = {0};
    size_t i = 0;
    if (streams == 1) {
        for (; i + SUMS <= n; i += SUMS) {
            for (size_t k = 0; k < SUMS; k += CONCURRENT_LINE)
                __builtin_prefetch(x + i + k + ahead, 0);
            for (size_t k = 0; k < SUMS; k++)
                sum[k] += x[i + k];
        }
        return total(sum, SUMS, i, n, x);
    }
    for (; i < part; i += CONCURRENT_LINE) {
        for (size_t s = 0; s < streams; s++)
            __builtin_prefetch(x + s * part + i + ahead, 0);
        for (size_t s = 0; s < streams; s++)
            for (size_t k = 0; k < CONCURRENT_LINE; k++)
                sum[k] += x[s * part + i + k];
    }
    return total(sum, CONCURRENT_LINE, streams * part, n, x);
}
