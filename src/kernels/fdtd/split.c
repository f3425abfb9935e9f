/* The loop of fused.c, its inner loop split by hand, as the source does it (anderson1997, section 3.2.3): fewer streams
 * at a time, and a row that two of the loops read is still in the first-level cache for the second: the traffic is the
 * same. */
#include "kernel.h"

#define NAME(function) function
#define ALONE
#include "split.h"

#define NAME(function) function##_restrict
#define ALONE restrict
#include "split.h"
