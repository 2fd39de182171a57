/* SPDX-License-Identifier: BSD-3-Clause
 * Layouts and sizes that the launcher and the kernel of attribution (N.28) share.  C11 that is also
 * CUDA C++.
 *
 * Floor: kernels.  Includes attention_types.h alone.
 *
 * A task is a query and some of its pairs.  A block has one task, over all heads and positions. */
#ifndef ATTRIBUTION_TYPES_H
#define ATTRIBUTION_TYPES_H

#include "attention_types.h"

enum {
  ATTRIBUTION_WARPS = 8,
  ATTRIBUTION_THREADS = WARP * ATTRIBUTION_WARPS,
  ATTRIBUTION_OWN = 2,                                     /* pairs of a warp */
  ATTRIBUTION_PAIRS = ATTRIBUTION_OWN * ATTRIBUTION_WARPS, /* the most pairs of a task */
  ATTRIBUTION_SPAN = ATTRIBUTION_THREADS /* positions whose weights are made at a time */
};

struct attribution_task {
  long long first;   /* index of its first pair, in atom_of, row, code and so on */
  int sequence;      /* index in the launch */
  int query;         /* index in the sequence */
  int pairs, unused; /* 1 .. ATTRIBUTION_PAIRS */
};

struct attribution_args {
  struct attention_args walk;           /* its parts, tasks and results are not used */
  const float *m, *l;                   /* [..][heads] */
  const float *atoms;                   /* [..][heads][dv] */
  const struct attribution_task *tasks; /* [blocks] */
  const int *atom_of;                   /* [pairs] */
  int top;
  long long *row; /* [pairs][top] */
  float *code;    /* [pairs][top] */
  double *sum;    /* [pairs] */
  double *part;   /* [pairs][heads], for pieces, which continue these sums; 0: no pieces */
};

/* attribution_columns: the columns of values in shared memory at a time.  attribution_pitch: the
 * numbers between two positions, odd so that lanes have no bank conflict. */
HOST_DEVICE int attribution_columns(int dv)
{
  return dv < 128 ? dv : 128;
}
HOST_DEVICE int attribution_pitch(int dv)
{
  return attribution_columns(dv) | 1;
}

/* Shared memory: values of 32 positions and atoms in f64, contributions, weights, cells, a
 * query. */
HOST_DEVICE int attribution_shared_bytes(int d, int dv)
{
  return 8 * (WARP * attribution_pitch(dv) + ATTRIBUTION_PAIRS * (dv + WARP + 1) +
              ATTRIBUTION_SPAN) +
         4 * (ATTRIBUTION_SPAN + padded_head(d));
}

#endif
