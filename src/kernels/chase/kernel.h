#ifndef PLUMBLINE_CHASE_H
#define PLUMBLINE_CHASE_H

#include "plumbline.h"

/* Options of the chase's own, by position in `parameters`. */
enum { CHASE_STRIDE };

/* Where the chase is after `loads` more loads. */
typedef void *chase_loop(void *node, size_t loads);

chase_loop chase_follow;

/* Byte offset of node i of the layouts `dense` and `strided`. */
size_t chase_dense(size_t i, size_t stride);
size_t chase_strided(size_t i, size_t stride);

/* A random order of n nodes in one single cycle: next[i] follows i. */
void chase_cycle(size_t n, uint32_t *next);

/* The data of a chase, and what the runtime asks of them: chain.c. */
typedef struct {
    pl_buffers *buffers;
    char *nodes;
    size_t n, stride, loads;        /* loads of a pass: further passes go on from there */
    size_t (*offset)(size_t i, size_t stride);
    void *begin, *middle, *end;     /* of the last run */
    void *further;                  /* of the program's own, to be freed */
} chase_chain;

chase_chain *chase_create(const pl_case *, size_t stride, size_t (*offset)(size_t, size_t), size_t bytes, size_t shift, size_t loads);
void **chase_node(const chase_chain *, size_t i);
void chase_touch(const pl_case *, int thread, int threads);
void chase_run(const pl_case *, const pl_plan *);
void chase_poison(const pl_case *);
double chase_verify(const pl_case *);
pl_work chase_work(const pl_case *);
void chase_destroy(void *);

#endif
