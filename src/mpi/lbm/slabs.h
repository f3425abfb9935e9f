/* A lattice Boltzmann fluid on several processes: a periodic box, cut into slabs along z, as TRATS' strong-scaling case
 * (hager2007, section 4.1).  The loops are those of src/kernels/lbm. */
#ifndef PLUMBLINE_LBM_SLABS_H
#define PLUMBLINE_LBM_SLABS_H

#include "app.h"
#include "lattice.h"

/* A rank's slab: planes first to first + box.planes - 1 of `planes`, and the two lattices, of which `in` has the last step's result. */
typedef struct {
    app *a;
    lbm_box box;
    size_t first, planes;
    double *in, *out;
    double *leaves, *arrives;       /* a plane of the five populations that move on to another slab */
} slabs;

/* Why so many ranks cannot have so many planes; NULL: they can. */
const char *slabs_refusal(int ranks, size_t planes);

size_t slabs_doubles(const app *, size_t n, size_t planes);     /* that slabs_create() wants, of this rank */

/* A cube's worth of n x n x planes cells, in memory whose first word is the last of a cache line. */
void slabs_create(slabs *, app *, size_t n, size_t planes, double *memory);

void slabs_start(slabs *);      /* every cell of this rank by its place in the whole box; ghosts and padding are no numbers */

/* A time step: the edges are exchanged, then all cells are computed. */
void slabs_step(slabs *, lbm_loop *);

/* The loop's viscosity over theory's, by a vortex in a box of its own across all ranks; collective. */
double slabs_viscosity(app *, lbm_loop *);

#endif
