/* Elements of x, and numbers in their order. */
#include <string.h>

#include "kernel.h"
#include "matrix.h"

double spmv_x(size_t j)
{
    const uint64_t bits = pl_random_bits(j);
    const double size = (double)(int)((bits & 1023) + 1);
    return bits >> 63 ? -size : size;
}

/* Bottom-up merge sort. */
void spmv_sort(size_t n, uint64_t *key, uint64_t *spare)
{
    enum { RUN = 12 };
    for (size_t begin = 0; begin < n; begin += RUN)
        for (size_t i = begin + 1; i < begin + RUN && i < n; i++) {
            const uint64_t moved = key[i];
            size_t at = i;
            for (; at > begin && key[at - 1] > moved; at--)
                key[at] = key[at - 1];
            key[at] = moved;
        }
    for (size_t width = RUN; width < n; width *= 2) {
        for (size_t begin = 0; begin < n; begin += 2 * width) {
            const size_t middle = begin + width < n ? begin + width : n, end = middle + width < n ? middle + width : n;
            size_t left = begin, right = middle, at = begin;
            while (left < middle && right < end) {      /* no branch: the order is random */
                const bool is_left = key[left] <= key[right];
                spare[at++] = is_left ? key[left] : key[right];
                left += is_left;
                right += !is_left;
            }
            memcpy(spare + at, key + left, (middle - left) * sizeof *key);
            memcpy(spare + at + (middle - left), key + right, (end - right) * sizeof *key);
        }
        memcpy(key, spare, n * sizeof *key);
    }
}
