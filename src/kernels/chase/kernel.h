#ifndef PLUMBLINE_CHASE_H
#define PLUMBLINE_CHASE_H

#include "plumbline.h"

/* Options of the chase's own, by position in `tuning`. */
enum { CHASE_STRIDE };

/* Where the chase is after `loads` more loads. */
typedef void *chase_loop(void *node, size_t loads);

chase_loop chase_follow;

/* Byte offset of node i of the layouts `dense` and `strided`. */
size_t chase_dense(size_t i, size_t stride);
size_t chase_strided(size_t i, size_t stride);

/* A random order of n nodes in one single cycle: next[i] follows i. */
void chase_cycle(size_t n, uint32_t *next);

#endif
