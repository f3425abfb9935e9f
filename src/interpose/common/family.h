/* What the PMPI libraries share: one line when something is wrong, and which MPI this is. */
#ifndef PLUMBLINE_FAMILY_H
#define PLUMBLINE_FAMILY_H

#include <mpi.h>

/* Before MPI_Init, whose handles may be another MPI's: one line on standard error and exit 2 where the program runs with
 * another MPI than the one whose mpi.h this library was compiled with.  `library`: "libplumbline_latency". */
void interpose_check_family(const char *library);

/* One line `plumbline: ...` on standard error, then exit 2, without any MPI.  What is wrong is mostly so on all processes of
 * a node: the first one says it. */
_Noreturn void interpose_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
