/* Molecular dynamics on a three-dimensional grid of processes: which has which part of the box, and what neighbours send each other. */
#ifndef PLUMBLINE_MD_EXCHANGE_H
#define PLUMBLINE_MD_EXCHANGE_H

#include "app.h"
#include "md.h"

/* Atoms that go to the neighbour below or above in one dimension, as ghosts there. */
typedef struct {
    int to, from;
    size_t count, first, came;  /* how many go; where those that come from the other side stand, and how many */
    double shift;               /* across the box's periodic face */
    uint32_t *which;
} md_swap;

typedef struct {
    app app;
    int grid[3], at[3];
    md_swap swap[6];            /* x below, x above, y ... */
    double *packed, *arrived;   /* messages */
    bool works;
    double migrated;            /* atoms of this process that went to another */
    md_system *system;
} md_process;

void md_grid(int ranks, int grid[3]);       /* processes in each dimension, as even as can be */

/* The place of one of the first `working` processes in the grid: collective over all of them; false, and nothing opened, on the others. */
bool md_open(md_process *, MPI_Comm all, int working);
void md_prepare(md_process *);              /* once the system is there: room for messages */
void md_close(md_process *);

/* Atoms that have left a process's part of the box go to whoever has that; then ghosts. */
void md_exchange(md_process *);
void md_follow(md_process *);               /* ghosts to where their atoms are */

#endif
