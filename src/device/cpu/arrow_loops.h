/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops of arrow systems of one instruction set, as a table.
 *
 * Floor: device.
 *
 * The 32 partial sums of (N.12) are also called lanes; row i belongs to lane i mod 32.  A *group*
 * is as many consecutive rows as a vector has lanes, so each lane of the vector has one row.  A
 * *panel* holds whitened rows, group after group.  A group is Y [k][d], u [d], L [d (d + 1) / 2]
 * (N.7, N.8), each entry a vector.  So u is column k of an extended Y, and T and w of (N.9) are one
 * triangle of (k + 1)(k + 2) / 2 sums. */
#ifndef DEVICE_CPU_ARROW_LOOPS_H
#define DEVICE_CPU_ARROW_LOOPS_H

#include "base/sums.h"
#include "model/arrow.h"

enum {
  ARROW_CHUNK = 256, /* rows that are handled at a time, in whole rounds of 32 lanes */
  ARROW_PART = 8,    /* lanes of a long system for a thread; a multiple of a vector's lanes */
  ARROW_WIDEST = 8,  /* doubles in the widest vector */
};

/* Rows first .. first + count - 1 of a system; first is a multiple of 32, count at most
 * ARROW_CHUNK.  Only the rows in lanes lane_begin .. lane_end - 1 are handled; these are multiples
 * of ARROW_PART. */
struct arrow_rows {
  const struct arrow_system *system;
  real ridge_t;
  gidx first;
  idx count, lane_begin, lane_end;
  real *panel; /* arrow_panel() reals, on a 64-byte boundary */
  real *tail;  /* arrow_tail() reals of workspace */
};

/* The determinant pairs of (N.13), one for each lane. */
struct arrow_pairs {
  real m[LANE_COUNT];
  int64_t e[LANE_COUNT];
  int bad; /* 1: a pivot was not positive and finite */
};

struct arrow_loops {
  /* panel <- whitened rows; multiply pairs by their pivots */
  void (*whiten)(const struct arrow_rows *rows, struct arrow_pairs *pairs);
  /* sums[arrow_sums(k)][32] += products of the panel's columns; is_first: sums start from 0 */
  void (*accumulate)(const struct arrow_rows *rows, int is_first, real *sums);
  /* out[n] <- sums of 32 lanes each; lanes from `used` on count as +0 and are not read */
  void (*fold)(const real *sums, gidx n, idx used, real *out);
  /* s[k][stride], lower triangle by columns <- L of (N.10); pivot[k] <- its pivots.  Returns the
   * index of the pivot that failed; -1: none.  Entries above the diagonal and past k are
   * overwritten. */
  idx (*border_factor)(real *s, idx k, idx stride, real *pivot);
  /* x[stride] <- L^-T L^-1 x */
  void (*border_solve)(const real *l, idx k, idx stride, real *x);
  /* step_t[n][d] of these rows <- (N.11), from the panel and step_b[k] */
  void (*steps)(const struct arrow_rows *rows, const real *step_b, real *step_t);
};

static inline gidx arrow_group(idx d, idx k)
{
  return (gidx)d * (k + 1) + d * (d + 1) / 2;
}

/* Reals of a panel of `rows` rows. */
static inline gidx arrow_panel(idx d, idx k, gidx rows)
{
  return (rows + LANE_COUNT - 1) / LANE_COUNT * LANE_COUNT * arrow_group(d, k);
}

static inline gidx arrow_tail(idx d, idx k)
{
  return ARROW_WIDEST * (gidx)d * (k > d ? k : d) + ARROW_WIDEST;
}

/* Number of sums.  Entry (i, j), i >= j, of T is sum i (i + 1) / 2 + j; w_j is k (k + 1) / 2 +
 * j. */
static inline gidx arrow_sums(idx k)
{
  return (gidx)(k + 1) * (k + 2) / 2;
}

#endif
