/* SPDX-License-Identifier: BSD-3-Clause
 * Operation of a device: queries of one sequence over one shard of its positions (N.27).
 *
 * Floor: device.
 *
 * Sums have the bits of model/attention.h for any number of queries in a job, thread count and
 * variant.  Nothing here is collective. */
#ifndef DEVICE_ATTENTION_H
#define DEVICE_ATTENTION_H

#include "device/device.h"
#include "model/attention.h"

struct attention_job {
  const struct attention *attention; /* borrowed, and checked by the caller */
  idx n;                             /* queries */
  const float *q;                    /* [n][heads][d] */
  const gidx *from, *end;            /* [n] the positions that each sees, of the whole sequence */
  gidx first;                        /* position where the shard begins */
  idx count;                         /* positions here: to the end of the shard or the sequence */
  const float *k, *v;                /* [count][kv_heads][d], [count][kv_heads][dv] */
  float *m, *l;                      /* [n][heads] */
  float *acc;                        /* [n][heads][stride] with attention_stride(dv) */
};

/* Floats of a row of acc, of which dv count. */
static inline idx attention_stride(idx dv)
{
  return (dv + 15) / 16 * 16;
}

/* m, l, acc <- the sums over this shard, joined with what they were where a query saw a shard
 * before.  A query that sees nothing here keeps what it has.  ERR_MEMORY; ERR_DEVICE without fused
 * multiply-add, or on a backend that lacks it. */
int device_attention(struct device *dev, const struct attention_job *job);

#endif
