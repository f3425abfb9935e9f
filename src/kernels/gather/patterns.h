#ifndef PLUMBLINE_GATHER_PATTERNS_H
#define PLUMBLINE_GATHER_PATTERNS_H

#include "kernel.h"

/* One pattern of a file: a line. */
typedef struct {
    const char *name;
    gather_kind kind;
    size_t count, wrap, delta, delta_to;
    size_t length;              /* indices of a row */
    int32_t *index, *inner;     /* as in gather_loop; inner: NULL but for gs and the multi kernels */
    size_t indices;             /* of `index`: not the length in the multi kernels */
    size_t read, written;       /* elements of the sparse arrays that are read and written; 0: none */
} gather_pattern;

typedef struct {
    int count;
    gather_pattern *pattern;
} gather_patterns;

/* The patterns of a file; the same at every call.  pl_fail()s, naming the line, on all that is not as it should be:
 *
 *     gather count=1024 wrap=1 delta=8 pattern=0,1,2,3,4,5,6,7
 *
 * first the kernel (gather, scatter, gs, multigather, multiscatter), then the keys of Spatter's JSON files that it needs, each
 * once (and name=TEXT, which the records repeat): count; wrap (not gs); delta, or of gs delta-gather and delta-scatter;
 * pattern (not gs), pattern-gather (gs, multigather), pattern-scatter (gs, multiscatter).
 * src/plumbline/model/spatter.py writes such files from Spatter's own. */
const gather_patterns *gather_read_patterns(const char *file);

extern const char *const gather_kind_names[];

#endif
