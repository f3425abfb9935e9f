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

int pl_mpi_main(int argc, char **argv, const pl_kernel *kernel);

#endif
