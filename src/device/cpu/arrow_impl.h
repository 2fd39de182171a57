/* SPDX-License-Identifier: BSD-3-Clause
 * Arrow systems on the CPU from inside: what threads work with, and the state of one try.
 *
 * Floor: device; included by arrow*.c only.
 *
 * arrow.c deals systems to threads and tries them, arrow_try.c is one try, arrow_failure.c finds
 * out why it failed. */
#ifndef DEVICE_CPU_ARROW_IMPL_H
#define DEVICE_CPU_ARROW_IMPL_H

#include "device/cpu/cpu.h"

/* Work arrays of one thread. */
struct arrow_worker {
  real *panel, *tail;    /* arrow_rows' */
  real *sums;            /* [arrow_sums(k)][32] of a segment */
  struct arrow_pairs at; /* of the same segment */
  real *total, *segment; /* [arrow_sums(k)] */
  real *schur;           /* [k][stride(k)] */
  real *pivot, *step_b;  /* [stride(k)] */
};

/* One try to solve one system, by one thread or by all. */
struct attempt {
  const struct arrow_loops *loops;
  struct arrow_worker *workers;
  int threads;
  int is_cached; /* whitened rows of all chunks are kept for the steps */
  struct arrow_item *item;
  real ridge_t, ridge_b;
  gidx first_segment;   /* of those being summed */
  struct det_pair pair; /* of the determinant so far (N.13) */
};

/* Reals between columns of a border of k. */
static inline idx stride_of(idx k)
{
  return (k + ARROW_WIDEST - 1) / ARROW_WIDEST * ARROW_WIDEST;
}

#endif
