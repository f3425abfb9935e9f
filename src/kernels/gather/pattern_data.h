/* One pattern of a file, laid out in memory: what gather_patterns.c, its data and their verification share. */
#ifndef PLUMBLINE_GATHER_PATTERN_DATA_H
#define PLUMBLINE_GATHER_PATTERN_DATA_H

#include "patterns.h"

/* Options of gather_patterns, by position in `parameters`. */
enum { GATHER_CONFIG, GATHER_DISTANCE };

/* gs goes from one sparse array to another. */
static inline bool has_dense(const gather_pattern *p) { return p->kind != GS; }

static inline bool writes_dense(const gather_pattern *p) { return p->kind == GATHER || p->kind == MULTIGATHER; }

static inline bool is_multi(const gather_pattern *p) { return p->kind == MULTIGATHER || p->kind == MULTISCATTER; }

/* It has a second list. */
static inline bool has_inner(const gather_pattern *p) { return p->kind == GS || is_multi(p); }

/* Where the j-th index of the pattern leads in the array that the kernel is named after, in the first row. */
static inline size_t leads_to(const gather_pattern *p, size_t j)
{
    return (size_t)(is_multi(p) ? p->index[p->inner[j]] : p->index[j]);
}

/* Rows of the dense array.  Where they are used again, each thread has its own: threads that write the same rows would
 * leave results that nobody can foretell.  As Spatter with --dense-buffers. */
static inline bool is_shared(const gather_pattern *p) { return p->wrap >= p->count; }

static inline size_t dense_rows(const gather_pattern *p) { return is_shared(p) ? p->count : p->wrap; }

/* Doubles from one thread's rows to the next one's. */
static inline size_t dense_stride(const gather_pattern *p)
{
    return is_shared(p) ? 0 : (dense_rows(p) * p->length / 8 + 2) * 8;
}

static inline size_t dense_elements(const gather_pattern *p, size_t threads)
{
    return !has_dense(p) ? 0 : is_shared(p) ? p->count * p->length : threads * dense_stride(p);
}

/* The arrays and lists, in memory. */
enum { READ, WRITTEN, DENSE, INDEX, INNER, BUFFERS };

typedef struct {
    pl_buffers *buffers;
    const gather_pattern *p;
    size_t *order;          /* which of the pattern's indices is the j-th: 0, 1, ... or sorted by where they lead */
    size_t block;           /* rows that `columns` takes at a time */
    double read, written;   /* lines, of gather_lines(), for this level and these threads */
    int level, threads;
} gather_data;

static inline double *array(const pl_case *c, int which) { return ((const gather_data *)c->data)->buffers->at[which]; }

static inline int32_t *list(const pl_case *c, int which) { return ((const gather_data *)c->data)->buffers->at[which]; }

/* The dense rows of one thread. */
static inline double *dense(const pl_case *c, int thread)
{
    return array(c, DENSE) + (size_t)thread * dense_stride(((const gather_data *)c->data)->p);
}

/* pattern_data.c: the pattern that --pattern and --config name, and its data. */
const gather_pattern *gather_pattern_of(const pl_case *);
void *gather_data_create(const pl_case *);
void gather_data_destroy(void *);
void gather_data_touch(const pl_case *, int thread, int threads);

/* What stands in the lists that the loop uses, INDEX or INNER; the multi kernels' order is that of the inner list. */
int32_t gather_listed(const gather_data *, int which, size_t j);

/* A thread's rows, and a pass of the case's loop over some of them. */
gather_rows gather_rows_of(const pl_case *, int thread);
void gather_run_rows(const pl_case *, const gather_rows *, int thread);

/* pattern_verification.c: before a pass, and the largest error after it. */
void gather_poison(const pl_case *);
double gather_verify(const pl_case *);

#endif
