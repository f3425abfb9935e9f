/* The transpose of a square matrix as a message (byna2003, sections 3 and 6): ways to pack, and ways to send. */
#ifndef DATATYPE_PACKING_H
#define DATATYPE_PACKING_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct {
    size_t n;               /* rows and columns */
    const double *matrix;   /* by rows: what is sent, column after column; what is unpacked */
    double *received;       /* what has come; what has been unpacked: by rows again */
    double *packed;         /* what has been packed: the columns, one after the other */
    MPI_Datatype columns;   /* the matrix as a vector of vectors: its columns */
    int partner;
    bool first;             /* this process sends first */
    bool left_to_mpi;       /* the library has refused to pack or unpack */
} datatype_ends;

typedef void datatype_pass(datatype_ends *);

/* To and fro between two processes: the transposed matrix, received contiguously. */
datatype_pass datatype_datatype, datatype_packed, datatype_blocked, datatype_mpi_pack, datatype_library;
/* The same bytes as they lie in memory. */
datatype_pass datatype_contiguous;

/* Within one process, no message. */
datatype_pass datatype_copy;
datatype_pass datatype_pack_datatype, datatype_pack_hand, datatype_pack_blocked, datatype_pack_library;
datatype_pass datatype_unpack_datatype, datatype_unpack_hand, datatype_unpack_blocked, datatype_unpack_library;

/* Whether libplumbline_pack is in this process. */
bool datatype_find_library(void);

/* Entries of the TLB that it decides by; 0: its own number.  False where it cannot be told. */
bool datatype_set_tlb(int entries);

#endif
