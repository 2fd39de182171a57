/* SPDX-License-Identifier: BSD-3-Clause
 * The Gram matrix of a joint update: rows stay with the ranks that add them up, and go past all.
 *
 * Floor: fit.
 *
 * Blocks of NORMAL_BLOCK atoms belong to the ranks in turn.  In a round each of some ranks, all
 * where there is room for it, sends one block to all others: so blocks come in their order, and all
 * ranks send.  Where ranks of a node share memory (fit/all_rows.h) a block comes there once. */
#ifndef FIT_GRAM_H
#define FIT_GRAM_H

#include "base/memory.h"
#include "comm/shared.h"
#include "device/normal.h"
#include "fit/all_rows.h"

struct gram {
  struct comm *c; /* borrowed, as are the next two */
  struct device *device;
  const struct all_rows *nodes; /* who shares memory with whom; NULL: nobody */
  idx k, at_once;               /* blocks of a round at most */
  struct normal_own own;
  struct buffer rows;    /* [own.count][k] real, 0 at first */
  struct buffer slab[2]; /* [at_once NORMAL_BLOCK][k] of a round and the next; shared: the first */
  real *held;            /* a host side of rows where they have none; NULL until it is wanted */
  idx *send, *counts;    /* [size] */
  gidx *zero, *here;     /* [size] */
  struct comm_shared shared;
  struct arena arena;
};

/* *shares <- are so many bytes to be once a node?  By `how`: "no", "auto", where several ranks of a
 * node can have the memory, or "yes", which is ERR_MEMORY where they cannot.  Only where every rank
 * computes on a CPU.  Collective, as is all below but gram_alloc(). */
int gram_choose(struct comm *c, gidx bytes, const char *how, int on_cpu, int *shares);

/* Bytes that the blocks of a round have at most, unless one has more; tests make it small. */
extern gidx gram_slab_bytes;

/* Bytes that a node shares; of the whole matrix. */
gidx gram_window_bytes(const struct comm *c, idx k);
gidx gram_bytes(idx k);

/* nodes: open, and shared, or NULL.  gram_alloc() makes the buffers of a struct that has c, device,
 * k; a dry device and arena count.  gram_close() is safe on a zeroed struct. */
int gram_open(struct gram *g, struct comm *c, struct device *device, idx k,
              const struct all_rows *nodes);
int gram_alloc(struct gram *g, int is_shared);
void gram_close(struct gram *g);

/* Call use() with the rows of some atoms after others, [count][k], until all have been. */
typedef int gram_use(void *self, const struct buffer *rows, idx first, idx count);
int gram_pass(struct gram *g, gram_use *use, void *self);

/* all[k][k] of rank 0 <- the matrix, or the matrix <- it; elsewhere `all` is not looked at. */
int gram_get(struct gram *g, real *all);
int gram_put(struct gram *g, const real *all);

#endif
