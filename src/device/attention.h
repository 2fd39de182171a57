/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device: attention of queries over keys and values (N.27).
 *
 * Floor: device.
 *
 * Results have the bits of model/attention.h for any number of queries in a job, thread count and
 * variant.  A CPU takes one shard (ATTENTION_SHARD positions) of one sequence per call of
 * device_attention().  A GPU takes many sequences, whose keys and values are in its memory, per
 * call of attend_run().  Nothing here is collective. */
#ifndef DEVICE_ATTENTION_H
#define DEVICE_ATTENTION_H

#include "device/device.h"
#include "model/attention.h"

struct attention_job {
  const struct attention *attention; /* borrowed, and checked by the caller */
  idx n;                             /* queries */
  const float *q;                    /* [n][heads][d] */
  const gidx *from, *end; /* [n] each query sees positions from .. end - 1 of the sequence */
  gidx first;             /* position where the shard begins */
  idx count;              /* positions of the shard: the last shard of a sequence may be shorter */
  const float *k, *v;     /* [count][kv_heads][d], [count][kv_heads][dv] */
  float *m, *l;           /* [n][heads] */
  float *acc;             /* [n][heads][stride] with attention_stride(dv) */
};

/* Floats of a row of acc; the first dv of them are used. */
static inline idx attention_stride(idx dv)
{
  return (dv + 15) / 16 * 16;
}

/* Add this shard to the sums m, l and acc.  A query that saw no earlier shard starts its sums here.
 * A query that sees nothing of this shard keeps its sums.  ERR_MEMORY; ERR_DEVICE without fused
 * multiply-add, or on a backend that lacks the operation. */
int device_attention(struct device *dev, const struct attention_job *job);

/* How keys and values are stored. */
enum attend_type { ATTEND_F32, ATTEND_F16, ATTEND_BF16 };

/* Limits on a GPU: columns of a head; positions and queries of a sequence together. */
enum { ATTEND_COLUMNS = 256, ATTEND_POSITIONS = (1 << 30) - 1 };

/* The sequences of a job and where their positions are stored.  The queries of all sequences stand
 * one after another. */
struct attend_plan {
  const struct attention *attention; /* all pointers: borrowed while attend_open() runs */
  idx sequences;
  const gidx *start;  /* [sequences + 1] first query of each sequence, ascending from 0 */
  const gidx *at;     /* [sequences] position of the first query; may be negative */
  const gidx *length; /* [sequences] number of positions */
  /* Without a table, position j of a sequence is in cell cell[sequence] + j. */
  const gidx *cell; /* [sequences] */
  /* With a table, it is in cell j mod size of block table[sequence][j div size]. */
  const idx *table; /* [sequences][width]; NULL: no table */
  gidx width;       /* entries beyond the length of a sequence are not read */
  idx size;
  gidx cells; /* number of cells of k and of v */
  enum attend_type type;
  /* NULL: k and v hold all positions of each sequence.  Otherwise they hold one piece of each
   * sequence, which begins at a multiple of ATTENTION_SHARD.  Positions, and `at`, then count from
   * the start of the piece, and each query must see some of the piece.  Jobs leave unfinished sums.
   * goes_on[sequence] nonzero: a query that also sees positions in front of the piece continues the
   * sums in the buffers.  Every other query starts its sums here. */
  const int *goes_on; /* [sequences] */
  const gidx *first;  /* [sequences] first position of each piece, for attribution; NULL: 0 */
};

/* Buffers, all read and written on the device's side. */
struct attend_job {
  const struct buffer *q;     /* f32 [queries][heads][d] */
  const struct buffer *k, *v; /* [cells][kv_heads][d], [cells][kv_heads][dv]; only cells that a
                                 query sees are used */
  /* f32 [queries][heads][dv]; for pieces the sums acc [queries][heads][attention_stride(dv)]. */
  const struct buffer *rows;
  const struct buffer *lse;   /* f32 [queries][heads]; for pieces NULL */
  const struct buffer *m, *l; /* f32 [queries][heads] the sums at the end; NULL: not wanted, which
                                 is not allowed for pieces */
};

/* A plan that a device has taken. */
struct attend {
  struct device *device; /* borrowed */
  gidx queries;
  idx heads;
  gidx q, k, v, rows, lse; /* least bytes of the buffers of a job */
  int is_open;             /* 1: sequences are pieces, and sums stay unfinished */
  void *state;             /* owned; only the backend looks into it */
};

/* Check and take a plan; any number of jobs may follow.  ERR_INPUT: a sequence, an entry of the
 * table or a size of the heads is wrong, and the message says which.  ERR_DEVICE on a CPU, and for
 * heads or sequences that are too large for a GPU.  ERR_MEMORY.  attend_close() is safe on a zeroed
 * struct. */
int attend_open(struct attend *w, struct device *dev, const struct attend_plan *plan);
void attend_close(struct attend *w);
/* rows, lse <- (N.27); for pieces m, l and acc <- the sums, as device_attention() leaves them.
 * Returns before the GPU has ended; later work on the device's stream waits for it. */
int attend_run(struct attend *w, const struct attend_job *job);

#endif
