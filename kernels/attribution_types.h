/* SPDX-License-Identifier: BSD-3-Clause
 * What the launcher and the kernel of attribution (N.28) agree on.  C11 that is also CUDA C++.
 *
 * Floor: kernels.  Includes attention_types.h alone.
 *
 * A task is a query and some of its pairs; a block has a task, over all heads and positions. */
#ifndef ATTRIBUTION_TYPES_H
#define ATTRIBUTION_TYPES_H

#include "attention_types.h"

enum {
  ATTRIBUTION_WARPS = 8,
  ATTRIBUTION_THREADS = WARP * ATTRIBUTION_WARPS,
  ATTRIBUTION_OWN = 2,                                     /* pairs of a warp */
  ATTRIBUTION_PAIRS = ATTRIBUTION_OWN * ATTRIBUTION_WARPS, /* of a task, at most */
  ATTRIBUTION_SPAN = ATTRIBUTION_THREADS /* positions that get weights at a time */
};

struct attribution_task {
  long long first;   /* of its pairs, in atom_of and what follows */
  int sequence;      /* of the launch */
  int query;         /* of the sequence */
  int pairs, unused; /* 1 .. ATTRIBUTION_PAIRS */
};

struct attribution_args {
  struct attention_args walk;           /* of which parts, tasks and results are not used */
  const float *m, *l;                   /* [..][heads] */
  const float *atoms;                   /* [..][heads][dv] */
  const struct attribution_task *tasks; /* [blocks] */
  const int *atom_of;                   /* [pairs] */
  int top;
  long long *row; /* [pairs][top] */
  float *code;    /* [pairs][top] */
  double *sum;    /* [pairs] */
  double *part;   /* [pairs][heads] of pieces, which go on from there; 0: all positions are here */
};

/* Columns of values that are in shared memory at a time, and numbers from a position's to the next:
 * odd, so that lanes meet in no bank. */
HOST_DEVICE int attribution_columns(int dv)
{
  return dv < 128 ? dv : 128;
}
HOST_DEVICE int attribution_pitch(int dv)
{
  return attribution_columns(dv) | 1;
}

/* Values of 32 positions and atoms in f64, contributions, weights, cells, a query. */
HOST_DEVICE int attribution_shared_bytes(int d, int dv)
{
  return 8 * (WARP * attribution_pitch(dv) + ATTRIBUTION_PAIRS * (dv + WARP + 1) +
              ATTRIBUTION_SPAN) +
         4 * (ATTRIBUTION_SPAN + padded_head(d));
}

#endif
