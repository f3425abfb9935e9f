/* Strided copy  y(1:n) = x(1:n*k:k), and the other way round.
 *
 * Anderson, Brooks, Grassl, Scott 1997, section 3.3.2, figure 3.  For k < 16 a pass is
 * the one run of the source.  Beyond, it would leave most lines of x alone, and soon all that it touches would stay in
 * cache; so a pass has k / 8 runs that begin at 0, 8, 16, ...: no line of x gives more than one element, and nearly all
 * lines (the half of them at least, k = 15) have passed before one is used again, whatever the stride.
 * Variants: the direction, then the one thing in which they differ from it. */
#include "kernel.h"

void strided_read(size_t n, double *restrict x, double *restrict y, const long *parameters)
{
    const size_t k = (size_t)parameters[STRIDED_STRIDE];
    for (size_t first = 0; first < strided_end(n, k); first += STRIDED_LINE)
        for (size_t i = first; i < n; i += k)
            *y++ = x[i];
}

void strided_write(size_t n, double *restrict x, double *restrict y, const long *parameters)
{
    const size_t k = (size_t)parameters[STRIDED_STRIDE];
    for (size_t first = 0; first < strided_end(n, k); first += STRIDED_LINE)
        for (size_t i = first; i < n; i += k)
            x[i] = *y++;
}

/* prefetch: software prefetch of x, `distance` elements of the run ahead. */

void strided_read_prefetch(size_t n, double *restrict x, double *restrict y, const long *parameters)
{
    const size_t k = (size_t)parameters[STRIDED_STRIDE], ahead = k * (size_t)parameters[STRIDED_DISTANCE];
    for (size_t first = 0; first < strided_end(n, k); first += STRIDED_LINE)
        for (size_t i = first; i < n; i += k) {
            __builtin_prefetch(x + i + ahead, 0);
            *y++ = x[i];
        }
}

void strided_write_prefetch(size_t n, double *restrict x, double *restrict y, const long *parameters)
{
    const size_t k = (size_t)parameters[STRIDED_STRIDE], ahead = k * (size_t)parameters[STRIDED_DISTANCE];
    for (size_t first = 0; first < strided_end(n, k); first += STRIDED_LINE)
        for (size_t i = first; i < n; i += k) {
            __builtin_prefetch(x + i + ahead, 1);
            x[i] = *y++;
        }
}

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

/* nt: non-temporal stores to y, one element each: they need no alignment beyond it, and eight make a line. */
void strided_read_nt(size_t n, double *restrict x, double *restrict y, const long *parameters)
{
    const size_t k = (size_t)parameters[STRIDED_STRIDE];
    for (size_t first = 0; first < strided_end(n, k); first += STRIDED_LINE)
        for (size_t i = first; i < n; i += k) {
            long long bits;
            memcpy(&bits, x + i, sizeof bits);
            _mm_stream_si64((long long *)(void *)y++, bits);
        }
    _mm_sfence();
}
#endif
