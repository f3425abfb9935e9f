/* The measuring runtime for MPI programs: the harness, with all processes of MPI_COMM_WORLD measuring together.
 *
 * A program is one line, as elsewhere:
 *
 *     int main(int argc, char **argv) { return pl_mpi_main(argc, argv, &pingpong); }
 *
 * MPI is initialised before the options are read and finalised at exit, whatever ends the program; an error inside MPI
 * ends all processes with the message of the MPI. */
#ifndef PLUMBLINE_MPI_RUNTIME_H
#define PLUMBLINE_MPI_RUNTIME_H

#include <mpi.h>

#include "plumbline.h"

/* Of an application: a curve over the number of processes, by turns in one job, which fills cores, sockets and nodes in the order of ranks.
 * For pl_kernel.parameters; how many processes work; whether this one does; fails where there are fewer. */
#define PL_WORKING_PARAMETER \
    {"working", 0, 1, "processes that work, the first of them; the others wait; 0: all", .by_turns = true}
int pl_working(long given);
bool pl_works(long given);
void pl_check_working(long given);

/* Of some samples, which are sorted by it: the least, the median, the robust relative spread (quartiles). */
typedef struct { double least, median, spread; } pl_summary;
pl_summary pl_summary_of(double *samples, int n);

int pl_mpi_main(int argc, char **argv, const pl_kernel *kernel);

#endif
