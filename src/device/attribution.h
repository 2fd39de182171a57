/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device: what positions and heads contribute to scores (N.28).
 *
 * Floor: device.
 *
 * Results have the bits of model/attribution.h for any number of queries in a job, thread count and
 * variant.  As in attention.h, a CPU takes one shard of one sequence per call, and a GPU takes all
 * queries of a plan, whose keys and values are in its memory.  Nothing here is collective.
 *
 * A pair is a query and one of its atoms.  The lists are those of model/top.h, one for each pair;
 * an entry is a source, which is a position and a head (model/attribution.h). */
#ifndef DEVICE_ATTRIBUTION_H
#define DEVICE_ATTRIBUTION_H

#include "device/attention.h"
#include "model/top.h"

struct attribution_job {
  const struct attention *attention; /* borrowed, and checked by the caller */
  idx n;                             /* queries */
  const float *q;                    /* [n][heads][d] */
  const float *m, *l;     /* [n][heads] sums of (N.27) over all positions that the query sees */
  const gidx *from, *end; /* [n] each query sees positions from .. end - 1 of the sequence */
  gidx first;             /* position where the shard begins */
  idx count;              /* positions of the shard: the last shard of a sequence may be shorter */
  const float *k, *v;     /* [count][kv_heads][d], [count][kv_heads][dv] */
  idx n_atoms;
  const float *atoms;   /* [n_atoms][heads][dv] */
  const gidx *start;    /* [n + 1] query i has the pairs start[i] .. start[i + 1] - 1 */
  const idx *atom_of;   /* [pairs] the atom of each pair */
  struct top_rows *top; /* one list for each pair */
  real *part;           /* [pairs][heads] sums of contributions, each a chain over positions */
};

/* Add the positions of this shard to top and part.  Call it for the shards in ascending order.
 * ERR_MEMORY; ERR_DEVICE without fused multiply-add, or on a backend that lacks the operation. */
int device_attribution(struct device *dev, const struct attribution_job *job);

/* Buffers are used on the device's side; start and end are host memory. */
struct attribute_job {
  const struct buffer *q, *k, *v; /* as in struct attend_job */
  const struct buffer *m, *l;     /* f32 [queries][heads] as attend_run() left them */
  const struct buffer *atoms;     /* f32 [..][heads][dv] */
  gidx pairs;
  const gidx *start, *end;      /* [queries] query i has the pairs start[i] .. end[i] - 1 */
  const struct buffer *atom_of; /* i32 [pairs] */
  idx top;
  const struct buffer *row;  /* i64 [pairs][top] sources */
  const struct buffer *code; /* f32 [pairs][top] their contributions */
  const struct buffer *sum;  /* f64 [pairs]; for pieces NULL */
  const struct buffer *part; /* f64 [pairs][heads] sums over positions; without pieces NULL */
};

/* row, code, sum <- the lists and sums of the pairs of all queries of a plan.  For pieces, row,
 * code and part are continued, and the pieces of a sequence must come in ascending order.  Returns
 * before the GPU has ended; start and end may be freed after the return. */
int attend_attribute(struct attend *w, const struct attribute_job *job);

#endif
