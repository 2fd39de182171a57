/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device: queries over keys and values (N.27).
 *
 * Floor: device.
 *
 * Results have the bits of model/attention.h for any number of queries in a job, thread count and
 * variant.  A CPU takes one sequence and one shard of its positions at a time, device_attention();
 * a GPU takes many sequences whose keys and values it has, attend_run().  Nothing here is
 * collective. */
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

/* How keys and values are stored. */
enum attend_type { ATTEND_F32, ATTEND_F16, ATTEND_BF16 };

/* What a GPU takes: columns of a head, and positions of a sequence, at most. */
enum { ATTEND_COLUMNS = 256, ATTEND_POSITIONS = (1 << 30) - 1 };

/* Sequences, and where their positions are.  Queries of all sequences stand one after another. */
struct attend_plan {
  const struct attention *attention; /* borrowed while attend_open() runs, as all here */
  idx sequences;
  const gidx *start;  /* [sequences + 1] where the queries of each begin, rising from 0 */
  const gidx *at;     /* [sequences] the position of its first query, which may be negative */
  const gidx *length; /* [sequences] its positions */
  /* Without a table, position j of a sequence is in cell `cell` + j. */
  const gidx *cell; /* [sequences] */
  /* With one, in cell j mod size of block table[j div size] of the sequence's row. */
  const idx *table; /* [sequences][width]; NULL: there is none */
  gidx width;       /* entries beyond the length of a sequence may be anything */
  idx size;
  gidx cells; /* of k and v */
  enum attend_type type;
  /* NULL: all positions of each sequence are here.  Else these are a piece of it that begins at a
   * multiple of ATTENTION_SHARD: positions count from there, also `at`, which may be any as long as
   * each query sees some of the piece.  Sums stay open, and where this says so a query that sees
   * positions before the piece goes on from the sums that are there, else it begins here. */
  const int *goes_on; /* [sequences] */
  const gidx *first;  /* [sequences] where each piece begins, for attribution; NULL: 0 */
};

/* All on the device's side. */
struct attend_job {
  const struct buffer *q;     /* f32 [queries][heads][d] */
  const struct buffer *k, *v; /* [cells][kv_heads][d], [cells][kv_heads][dv]; any but the named
                                 cells may hold anything */
  const struct buffer *rows;  /* f32 [queries][heads][dv]; of pieces acc, [attention_stride(dv)] */
  const struct buffer *lse;   /* f32 [queries][heads]; of pieces NULL */
  const struct buffer *m, *l; /* f32 [queries][heads] what the walk ended with; NULL: not wanted */
};

/* The plan as the device has it. */
struct attend {
  struct device *device; /* borrowed */
  gidx queries;
  idx heads;
  gidx q, k, v, rows, lse; /* bytes that the buffers of a job have, at least */
  int is_open;             /* sums of pieces */
  void *state;             /* owned; only the backend looks into it */
};

/* Check and take a plan, for any number of jobs.  ERR_INPUT names the entry of the table, or the
 * sequence, that is not right; ERR_DEVICE for heads or sequences beyond what a GPU takes, and on a
 * CPU; ERR_MEMORY.  attend_close() is safe on a zeroed struct. */
int attend_open(struct attend *w, struct device *dev, const struct attend_plan *plan);
void attend_close(struct attend *w);
/* rows, lse <- (N.27), or of pieces m, l and acc as device_attention() leaves them.  Not waited
 * for: what comes after it on the device's stream is. */
int attend_run(struct attend *w, const struct attend_job *job);

#endif
