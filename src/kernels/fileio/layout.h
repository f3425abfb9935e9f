/* Which bytes a file has: how much is written at once, and as what; the shape of the array, and its values. */
#ifndef PLUMBLINE_FILEIO_LAYOUT_H
#define PLUMBLINE_FILEIO_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel.h"

enum { FILEIO_LAYOUTS = 2 * 3 + 1 };    /* all stream files are alike, whatever wrote them */

typedef struct {
    bool fortran;
    fileio_granularity granularity;
    fileio_form form;
    int layout;             /* files of one layout hold the same bytes */
} fileio_mode;

fileio_mode fileio_mode_of(const char *variant);

/* Of n elements, as nearly cubic as n allows, rows the longest: 50 x 50 x 50 for 1 MB; n x 1 x 1 for a prime. */
void fileio_shape(size_t n, size_t *shape);

size_t fileio_elements_per_record(size_t n, const fileio_mode *);
size_t fileio_file_bytes(size_t n, const fileio_mode *);

/* All 53 bits are used, so that no format has it easy; never zero, so that errors can be relative. */
double fileio_value(size_t i);

#endif
