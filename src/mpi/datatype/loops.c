#include "loops.h"

#include "plumbline.h"

enum { BLOCK = 16 };    /* rows and columns: two lines of each row, 16 pages on either side */

/* In the order of the message: writes are contiguous, reads a row apart. */
void pack_plain(size_t n, const double *restrict from, double *restrict to)
{
    for (size_t j = 0; j < n; j++) {
        PL_KEEP_LOOP();     /* the order is the subject: not to be interchanged */
        for (size_t i = 0; i < n; i++)
            to[j * n + i] = from[i * n + j];
    }
}

/* Reads are contiguous, writes a row apart. */
void unpack_plain(size_t n, const double *restrict from, double *restrict to)
{
    for (size_t j = 0; j < n; j++) {
        PL_KEEP_LOOP();
        for (size_t i = 0; i < n; i++)
            to[i * n + j] = from[j * n + i];
    }
}

void pack_blocked(size_t n, const double *restrict from, double *restrict to)
{
    for (size_t columns = 0; columns < n; columns += BLOCK)
        for (size_t rows = 0; rows < n; rows += BLOCK)
            for (size_t j = columns; j < pl_least(columns + BLOCK, n); j++) {
                PL_KEEP_LOOP();
                for (size_t i = rows; i < pl_least(rows + BLOCK, n); i++)
                    to[j * n + i] = from[i * n + j];
            }
}

void unpack_blocked(size_t n, const double *restrict from, double *restrict to)
{
    for (size_t columns = 0; columns < n; columns += BLOCK)
        for (size_t rows = 0; rows < n; rows += BLOCK)
            for (size_t j = columns; j < pl_least(columns + BLOCK, n); j++) {
                PL_KEEP_LOOP();
                for (size_t i = rows; i < pl_least(rows + BLOCK, n); i++)
                    to[i * n + j] = from[j * n + i];
            }
}
