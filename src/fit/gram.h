/* SPDX-License-Identifier: BSD-3-Clause
 * The Gram matrix of a joint update.  Each rank computes and keeps some of its rows, and the ranks
 * send these rows to each other when they are used.
 *
 * Floor: fit.
 *
 * Blocks of NORMAL_BLOCK atoms are dealt to the ranks in turn.  In a round some ranks, all if
 * memory allows, each send one block to all others.  So blocks arrive in order, and ranks divide
 * the work of sending.  If ranks of a node share memory (fit/all_rows.h), each block is sent once
 * to each node. */
#ifndef FIT_GRAM_H
#define FIT_GRAM_H

#include "base/memory.h"
#include "comm/shared.h"
#include "device/normal.h"
#include "fit/all_rows.h"

struct gram {
  struct comm *c; /* borrowed, like the next two */
  struct device *device;
  const struct all_rows *nodes; /* the ranks that share memory; NULL: none do */
  idx k, at_once;               /* at_once: the largest number of blocks of a round */
  struct normal_own own;
  struct buffer rows; /* [own.count][k] real, 0 at first */
  /* [at_once * NORMAL_BLOCK][k] blocks of this round and of the next.  If a node shares memory,
   * only slab[0] is used. */
  struct buffer slab[2];
  real *held;         /* a host copy of `rows`, if `rows` has no host side; NULL until it is
                       * needed */
  idx *send, *counts; /* [size] */
  gidx *zero, *here;  /* [size] */
  struct comm_shared shared;
  struct arena arena;
};

/* *shares <- 1: the ranks of a node share `bytes` bytes, which the node then has once.  It is 0 if
 * any rank computes on a GPU, or if no node has several ranks.  Otherwise `how` decides.  "no": 0.
 * "auto": 1 if the memory can be shared.  "yes": 1, or failure with ERR_MEMORY if it cannot.
 * Collective, like all functions below except gram_alloc() and those that return bytes. */
int gram_choose(struct comm *c, gidx bytes, const char *how, int on_cpu, int *shares);

/* Largest number of bytes of the blocks of a round; a round has at least one block.  Tests make it
 * small. */
extern gidx gram_slab_bytes;

/* gram_window_bytes(): bytes that the ranks of a node share.  gram_bytes(): bytes of the whole
 * matrix. */
gidx gram_window_bytes(const struct comm *c, idx k);
gidx gram_bytes(idx k);

/* gram_open(): nodes is open and shared, or NULL.  gram_alloc() allocates the buffers of a struct
 * that has c, device and k; a dry device and arena only count bytes.  gram_close() is safe on a
 * zeroed struct. */
int gram_open(struct gram *g, struct comm *c, struct device *device, idx k,
              const struct all_rows *nodes);
int gram_alloc(struct gram *g, int is_shared);
void gram_close(struct gram *g);

/* Call use() with the matrix rows of `count` atoms at a time, [count][k], in order, until it has
 * had all. */
typedef int gram_use(void *self, const struct buffer *rows, idx first, idx count);
int gram_pass(struct gram *g, gram_use *use, void *self);

/* gram_get(): all[k][k] on rank 0 <- the matrix.  gram_put(): the matrix <- all[k][k] of rank 0.
 * Other ranks do not use `all`. */
int gram_get(struct gram *g, real *all);
int gram_put(struct gram *g, const real *all);

#endif
