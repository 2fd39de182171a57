/* SPDX-License-Identifier: BSD-3-Clause
 * Where the Gram matrix of a joint update is: in each rank's own memory, or once a node, where its
 * ranks share it.
 *
 * Floor: fit.
 *
 * Of a matrix that is shared each rank adds up its own rows in place, as of one that is not; where
 * all of it is written each rank of a node writes rows of its own, write_first on, write_count of
 * them.  Between two calls of gram_sync() a row is either written, by one rank, or read. */
#ifndef FIT_GRAM_H
#define FIT_GRAM_H

#include "base/memory.h"
#include "comm/shared.h"

struct gram {
  struct comm *c; /* borrowed */
  idx k;
  real *at; /* [k][k] zeros at first; NULL: it is not shared */
  idx write_first, write_count;
  gidx *leader; /* [size] the first rank of the node of each rank */
  idx *counts;  /* [size] */
  real *piece;  /* [rows][k] on their way to other nodes; NULL: there is one node */
  idx rows;
  struct comm_shared shared;
  struct arena arena;
};

/* *shares <- are so many bytes, of the matrix and of lists (fit/all_rows.h), to be once a node?  By
 * `how`: "no", "auto", where several ranks of a node can have the memory, or "yes", which is
 * ERR_MEMORY where they cannot.  Only where every rank computes on a CPU.  Collective, as is all
 * below. */
int gram_choose(struct comm *c, gidx bytes, const char *how, int on_cpu, int *shares);

/* Bytes of the matrix. */
gidx gram_bytes(idx k);

/* gram_close() is safe on a zeroed struct. */
int gram_open(struct gram *g, struct comm *c, idx k);
void gram_close(struct gram *g);

/* What ranks of this node have written all of them read from here on, and what they have read may
 * be written; at once where nothing is shared. */
int gram_sync(struct gram *g);

/* Every rank has added up its rows, those of comm_partition(): each node gets the others'. */
int gram_gather(struct gram *g);

/* Rows and columns of the atoms with cleared[k] become 0.  Behind it comes gram_sync() before
 * anything else; it is not collective itself. */
void gram_clear(struct gram *g, const unsigned char *cleared);

#endif
