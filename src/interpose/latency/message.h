/* What message.c and probed.c share. */
#ifndef PLUMBLINE_LATENCY_MESSAGE_H
#define PLUMBLINE_LATENCY_MESSAGE_H

#include "latency.h"

void lat_append(lat_comm *, lat_pending *);     /* to the receives in their order; NULL: only its place in it */
void lat_unlink(lat_pending *, lat_pending **first, lat_pending **last);
void lat_look(lat_pending *);                   /* asks the MPI, and no more */
void lat_here(lat_pending *, ns now, const MPI_Status *);   /* it is complete, or there */
void lat_ask(lat_comm *, lat_pending *);        /* for the stamp of what is here */

/* Whether a receive that is not complete may get, or have got, a message of this source and tag. */
bool lat_suits(const lat_pending *, int source, int tag);

/* Whether one that was posted before may have got a message of the same source and tag. */
bool lat_order_unknown(lat_comm *, const lat_pending *);

#endif
