/* The proof that what stands in a file, or was read from it, is the array. */
#ifndef PLUMBLINE_FILEIO_PROOF_H
#define PLUMBLINE_FILEIO_PROOF_H

#include "layout.h"

/* Of element i.  Relative for text, which may be rounded; anything but the same bytes is wrong in binary. */
double fileio_error_of(double found, size_t i, fileio_form);

/* Largest error of a file of n elements against values computed anew; infinite where it is not of the mode's layout. */
double fileio_verify_file(size_t n, const fileio_mode *, int descriptor);

#endif
