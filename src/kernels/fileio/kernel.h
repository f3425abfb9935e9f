#ifndef PLUMBLINE_FILEIO_KERNEL_H
#define PLUMBLINE_FILEIO_KERNEL_H

#include <stddef.h>

/* How much one statement moves, and as what; the values are known to kernel.F90. */
typedef enum { FILEIO_ELEMENT, FILEIO_ROW, FILEIO_WHOLE } fileio_granularity;
typedef enum { FILEIO_FORMATTED, FILEIO_SEQUENTIAL, FILEIO_STREAM } fileio_form;

/* Characters of a number in a formatted file: 17 significant digits hold a double exactly, and a blank goes before. */
enum { FILEIO_WIDTH = 25 };

/* Open, write or read `bytes`, close.  0 or errno; EIO where the file ends early. */
int fileio_c_write(const char *path, size_t bytes, const void *from);
int fileio_c_read(const char *path, size_t bytes, void *to);

#ifdef PL_FORTRAN
/* Open, write or read a(nx,ny,nz), close.  0 or Fortran's iostat, with its message; `record` is the length of the longest
 * record in characters, for formatted files. */
int fileio_fortran(int reading, int granularity, int form, const char *path, int path_length, int record,
                   size_t nx, size_t ny, size_t nz, double *a, char *message, int message_length);
#endif

#endif
