/* SPDX-License-Identifier: BSD-3-Clause
 * Internals of the arrow systems on the CPU: work arrays of threads, and the state of one attempt.
 *
 * Floor: device; included by arrow*.c only.
 *
 * arrow.c gives systems to threads and repeats failed attempts; arrow_try.c is one attempt;
 * arrow_failure.c finds out why it failed. */
#ifndef DEVICE_CPU_ARROW_IMPL_H
#define DEVICE_CPU_ARROW_IMPL_H

#include "device/cpu/cpu.h"

/* Work arrays of one thread. */
struct arrow_worker {
  real *panel, *tail;    /* as in struct arrow_rows */
  real *sums;            /* [arrow_sums(k)][32] sums over the rows of a segment (N.12) */
  struct arrow_pairs at; /* determinant of the same segment */
  real *total, *segment; /* [arrow_sums(k)] */
  real *schur;           /* [k][stride(k)] */
  real *pivot, *step_b;  /* [stride(k)] */
};

/* One attempt to solve one system, by one thread or by all. */
struct attempt {
  const struct arrow_loops *loops;
  struct arrow_worker *workers;
  int threads;
  int is_cached; /* the whitened rows of all chunks are kept for the steps */
  struct arrow_item *item;
  real ridge_t, ridge_b;
  gidx first_segment;   /* the first of the segments that are being summed */
  struct det_pair pair; /* the determinant so far (N.13) */
};

/* Reals between columns of the Schur complement of a border of k. */
static inline idx stride_of(idx k)
{
  return (k + ARROW_WIDEST - 1) / ARROW_WIDEST * ARROW_WIDEST;
}

#endif
