/* Plane waves on several processes: each has some planes of the grid of every band, and for the third direction of a transform, which goes
 * across the planes, some rows of all planes: an all-to-all exchange of every band, there and back.  Products are summed over the processes. */
#ifndef PLUMBLINE_SLABS_H
#define PLUMBLINE_SLABS_H

#include "app.h"
#include "kernel.h"

typedef struct {
    planewave waves;            /* bands of own planes */
    app app;
    pl_range planes, rows;
    double complex *lines;      /* own rows of all planes: lines along z, one after the other */
    double complex *packed, *arrived;
    int *count, *begin, *count_of_rows, *begin_of_rows;     /* doubles for each process: of own planes, of own rows */
    void *flat[2], *across[2];  /* FFTW's plans, there and back: of all own planes, of all lines */
} slabs;

typedef void slabs_loop(slabs *);
slabs_loop slabs_plain;
#ifdef PL_FFTW
slabs_loop slabs_fftw;
#endif

pl_range slabs_part(size_t n, int rank, int ranks);
void slabs_open(slabs *);       /* `app`, `waves` and their places are there */
void slabs_close(slabs *);

#endif
