/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device: what positions and heads contribute to scores (N.28).
 *
 * Floor: device.
 *
 * Results have the bits of model/attribution.h for any number of queries in a job, thread count and
 * variant.  As in attention.h a CPU takes one sequence and one shard of its positions at a time,
 * and a GPU all queries of a plan, whose keys and values it has.  Nothing here is collective.
 *
 * A pair is a query and an atom that it has; lists are those of model/top.h, one for each pair. */
#ifndef DEVICE_ATTRIBUTION_H
#define DEVICE_ATTRIBUTION_H

#include "device/attention.h"
#include "model/top.h"

struct attribution_job {
  const struct attention *attention; /* borrowed, and checked by the caller */
  idx n;                             /* queries */
  const float *q;                    /* [n][heads][d] */
  const float *m, *l;                /* [n][heads] of (N.27), over all that they see */
  const gidx *from, *end;            /* [n] the positions that each sees, of the whole sequence */
  gidx first;                        /* position where the shard begins */
  idx count;                         /* positions here: to the end of the shard or the sequence */
  const float *k, *v;                /* [count][kv_heads][d], [count][kv_heads][dv] */
  idx n_atoms;
  const float *atoms; /* [n_atoms][heads][dv] */
  const gidx *start;  /* [n + 1] where the pairs of each query begin in the next ones */
  const idx *atom_of; /* [pairs] */
  struct top_rows *top;
  real *part; /* [pairs][heads] the chains over positions */
};

/* top, part <- with the positions of this shard; shards come in ascending order.  ERR_MEMORY;
 * ERR_DEVICE without fused multiply-add, or on a backend that lacks it. */
int device_attribution(struct device *dev, const struct attribution_job *job);

/* All but start on the device's side. */
struct attribute_job {
  const struct buffer *q, *k, *v; /* as in an attend_job */
  const struct buffer *m, *l;     /* f32 [queries][heads] that attend_run() left */
  const struct buffer *atoms;     /* f32 [..][heads][dv] */
  gidx pairs;
  const gidx *start, *end;      /* [queries] host; a query has the pairs start .. end - 1 */
  const struct buffer *atom_of; /* i32 [pairs] */
  idx top;
  const struct buffer *row;  /* i64 [pairs][top] */
  const struct buffer *code; /* f32 [pairs][top] */
  const struct buffer *sum;  /* f64 [pairs]; of pieces NULL */
  const struct buffer
      *part; /* f64 [pairs][heads] the chains over positions, of pieces; else NULL */
};

/* row, code, sum <- lists and sums of the pairs of all queries of a plan; of pieces row, code and
 * part go on from what is there, and pieces of a sequence come in ascending order.  Not waited for,
 * but start and end may go. */
int attend_attribute(struct attend *w, const struct attribute_job *job);

#endif
