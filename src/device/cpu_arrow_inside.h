/* SPDX-License-Identifier: BSD-3-Clause
 * Arrow systems on the CPU from inside: what threads work with, and one try of one system.
 *
 * cpu_arrow.c deals systems to threads and tries them, cpu_arrow_try.c is a try,
 * cpu_arrow_failure.c finds out why one failed. */
#ifndef DEVICE_CPU_ARROW_INSIDE_H
#define DEVICE_CPU_ARROW_INSIDE_H

#include "device/cpu.h"

/* What a thread works with. */
struct arrow_worker {
  real *panel, *tail;    /* arrow_rows' */
  real *sums;            /* [arrow_sums(k)][32] of a segment */
  struct arrow_pairs at; /* of the same segment */
  real *total, *segment; /* [arrow_sums(k)] */
  real *schur;           /* [k][stride(k)] */
  real *pivot, *step_b;  /* [stride(k)] */
};

/* One try of one system, by one thread or by all. */
struct attempt {
  const struct arrow_loops *loops;
  struct arrow_worker *workers;
  int threads, is_cached;
  struct arrow_item *item;
  real ridge_t, ridge_b;
  gidx first_segment; /* of those being summed */
  struct log_pair pair;
};

/* Reals between columns of a border of k. */
static inline idx stride_of(idx k)
{
  return (k + ARROW_WIDEST - 1) / ARROW_WIDEST * ARROW_WIDEST;
}

/* Sums, border and outcome, then the steps, which are 0 where the outcome is not OK. */
void attempt_run(struct attempt *a);
void attempt_steps(struct attempt *a);

/* The outcome of a try that failed: at the lowest row whose block has a bad pivot, where there is
 * one; at pivot `at` of the Schur complement in the first worker, as border_make left it. */
void attempt_fail_row(const struct attempt *a);
void attempt_fail_border(const struct attempt *a, idx at);
/* ARROW_NOT_FINITE where an entry is not finite; whether that is so. */
int attempt_fail_entry(const struct attempt *a);

#endif
