/* Molecular dynamics of a Lennard-Jones liquid, in the units of its potential (length sigma, energy epsilon, mass 1): the class of
 * hager2007's IMD, short-ranged forces and nearly in cache.
 *
 * The state is the well-known one of a melted crystal: face-centred cubic, density 0.8442, temperature 1.44 at first, and MD_MELT steps on.
 * The potential is cut off at MD_CUTOFF and shifted to zero there; velocity Verlet (Swope et al., J. Chem. Phys. 76, 637, 1982); Verlet
 * lists (Phys. Rev. 159, 98, 1967) of what is nearer than MD_REACH, made anew every MD_EVERY steps from cells of half that edge.
 *
 * Atoms beyond the faces of the own box are ghosts: copies of atoms of the other side, or of another process (src/mpi/md), behind the
 * own ones in the same arrays.  So the loops over pairs know neither periodic boundaries nor processes. */
#ifndef PLUMBLINE_MD_H
#define PLUMBLINE_MD_H

#include <stdint.h>

#include "plumbline.h"

#define MD_DENSITY 0.8442
#define MD_TEMPERATURE 1.44
#define MD_STEP 0.004           /* in time */
#define MD_CUTOFF 2.5
#define MD_REACH 2.9            /* no atom moves by half the difference in MD_EVERY steps: 5 is fast for one of a million */

enum {
    MD_STEPS = 20,              /* of a pass */
    MD_EVERY = 10,              /* steps between two lists */
    MD_MELT = 100,
    MD_MOST = 128,              /* neighbours in a list; 86 on average */
    MD_PAD = 8,                 /* lists are filled up to whole vectors, by an atom that is far away */
    MD_LAYERS = 2,              /* cells that MD_REACH crosses */
};

/* Positions, of own atoms and then ghosts, four doubles for each, the last of them its number; and which cell has which,
 * as they were when the lists were made. */
typedef struct { double x[3]; int64_t index; } md_entry;
typedef struct {
    size_t n, ghosts;
    double *x;
    uint32_t *begin;            /* of each cell in `entry`, x fastest; and the end */
    md_entry *entry;
} md_image;

/* Of each own atom: neighbours begin[i] to begin[i] + count[i] and as many of `nobody` as fill them up.  The first mutual[i] are of the
 * same thread and stand in this list only (half lists): the force on them is this one's, too. */
typedef struct {
    uint64_t *begin;
    int32_t *count, *mutual, *neighbour;
} md_lists;

typedef struct { uint32_t source; int32_t side; } md_ghost;     /* side: 0..26, 13 is the own box */

typedef struct {
    pl_buffers *buffers;
    size_t all, room, own_room; /* atoms of all processes; places for own atoms and ghosts, and for own ones */
    double box[3];              /* edges of the periodic box */
    double low[3], edge[3];     /* corner and edges of the own part of it */
    int cells[3];               /* with those of the ghosts */
    md_image now, start;        /* start: that a pass begins with */
    double *v, *start_v, *f;    /* four doubles each */
    md_ghost *ghost;
    uint32_t *cell_of, *cursor;
    md_lists lists;
    pl_result *of_thread;       /* what threads tell each other */
    bool clipped;               /* an atom has had more neighbours than a list takes */
} md_system;

/* A thread of a team, and the atoms that it has. */
typedef struct { int thread, threads; pl_range own, ghosts; } md_worker;

/* Forces on the atoms of a part, from their lists. */
typedef void md_loop(pl_range part, const md_lists *, const double *x, double *f);
md_loop md_full, md_half;
#if defined(__x86_64__)
md_loop md_full_simd_avx512, md_full_simd_avx2;
#endif

/* The force between two atoms over their distance, of its square; shared by all loops in C. */
static inline double md_force(double r2)
{
    const double inverse = 1 / r2, sixth = inverse * inverse * inverse;
    return 48 * sixth * (sixth - 0.5) * inverse;
}

/* system.c: the crystal of 4 edge^3 atoms, its memory, its motion. */
size_t md_atoms(size_t edge, size_t most);       /* of a crystal of so many cells along its edge; fails if they are too few, or too many */
size_t md_edge(size_t atoms);
double md_lattice(size_t edge, size_t atom, double x[3]);           /* where an atom is at first; the edge of a unit cell */
size_t md_footprint(size_t n, const double edge[3]);
/* Address space; `n` own atoms at first, in the part of the box that begins at `low`.  NULL where there is none. */
md_system *md_create(const pl_case *, size_t all, double n, const double box[3], const double low[3], const double edge[3]);
void md_destroy(void *);
void md_velocity(size_t all, size_t atom, double v[3]);             /* at first; the sum of all atoms' is zero */
void md_drift(md_system *, pl_range own);                           /* half a kick, and a step */
void md_kick(md_system *, pl_range own);                            /* the other half */

/* lists.c.  md_build(): cells of an image, own atoms and ghosts, by all workers together; then each calls md_list() for its own. */
void md_build(md_system *, md_image *, md_worker);
void md_list(md_system *, const md_image *, pl_range part, pl_range own, bool half);
void md_barrier(md_worker);
int md_cell(const md_system *, int dimension, double x);

/* system.c: steps of velocity Verlet by a team, from forces on: each of its workers calls it.  Lists are made anew every MD_EVERY steps. */
typedef struct {
    void (*renew)(md_system *, md_worker *);        /* which ghosts there are, before lists are made; own atoms may change, too */
    void (*follow)(md_system *, md_worker *);       /* ghosts to where their atoms are */
} md_boundary;
void md_advance(md_system *, const md_boundary *, md_loop *, bool half, md_worker *, int steps);
void md_begin(md_system *, pl_range own);           /* as at the start */

/* The model of a pass of `n` atoms with so many ghosts, and the number of an atom within a distance by the density. */
pl_work md_work(double n, double ghosts, bool half);

/* proof.c.  `sum` adds up over the processes.  md_proof(): the error over what it may be; a crystal of up to 1000 atoms by its whole motion,
 * a larger one by how far its atoms have come. */
typedef void md_sum(double *, size_t);
double md_proof(const md_system *, md_sum *);
double md_energies(const md_system *, double *before, double momentum[3], md_sum *);    /* after; of all atoms */
void md_sums(const md_system *, const md_image *, const double *v, double sums[4]);     /* of own atoms: momentum, energy */

#endif
