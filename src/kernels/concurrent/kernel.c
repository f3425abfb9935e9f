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

/* What s parts of an odd number of lines leave over: less than two lines of each stream, and a part of one. */
static double rest(size_t first, size_t n, const double *restrict x)
{
    double sum = 0;
    for (size_t i = first; i < n; i++)
        sum += x[i];
    return sum;
}

double concurrent_plain(size_t n, const double *restrict x, const long *tuning)
{
    const size_t streams = (size_t)tuning[CONCURRENT_STREAMS];
    const size_t part = CONCURRENT_LINE * lines_of(n, streams);
    double sum[CONCURRENT_LINE] = {0};
    for (size_t i = 0; i < part; i += CONCURRENT_LINE)
        for (size_t s = 0; s < streams; s++)
            for (size_t k = 0; k < CONCURRENT_LINE; k++)
                sum[k] += x[s * part + i + k];
    for (size_t k = 1; k < CONCURRENT_LINE; k++)
        sum[0] += sum[k];
    return sum[0] + rest(streams * part, n, x);
}

/* prefetch: one software prefetch of each line, `distance` elements of its stream ahead. */
double concurrent_prefetch(size_t n, const double *restrict x, const long *tuning)
{
    const size_t streams = (size_t)tuning[CONCURRENT_STREAMS], ahead = (size_t)tuning[CONCURRENT_DISTANCE];
    const size_t part = CONCURRENT_LINE * lines_of(n, streams);
    double sum[CONCURRENT_LINE] = {0};
    for (size_t i = 0; i < part; i += CONCURRENT_LINE) {
        for (size_t s = 0; s < streams; s++)
            __builtin_prefetch(x + s * part + i + ahead, 0);
        for (size_t s = 0; s < streams; s++)
            for (size_t k = 0; k < CONCURRENT_LINE; k++)
                sum[k] += x[s * part + i + k];
    }
    for (size_t k = 1; k < CONCURRENT_LINE; k++)
        sum[0] += sum[k];
    return sum[0] + rest(streams * part, n, x);
}
