/* libplumbline_pack's own functions, for programs that measure it.  Everything else it does by standing before MPI's. */
#ifndef PLUMBLINE_PACK_H
#define PLUMBLINE_PACK_H

#include <mpi.h>

/* `count` items of a datatype to or from consecutive memory, whatever their size and layout.  They give the bytes that were
 * moved, or -1 where they cannot do it (a datatype that is not understood, 2 GiB or more, no MPI_Init before): MPI_Pack can. */
int plumbline_pack(const void *user, int count, MPI_Datatype type, void *packed);
int plumbline_unpack(const void *packed, void *user, int count, MPI_Datatype type);

/* Entries of the TLB that messages are judged and blocks are cut by from now on; 0: those of PLUMBLINE_PACK_TLB.  Between messages only. */
void plumbline_pack_tlb(int entries);

#endif
