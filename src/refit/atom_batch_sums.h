/* SPDX-License-Identifier: BSD-3-Clause
 * Sums over the rows of a batch's atoms, by (N.0), each made by the atom's owner.
 *
 * Floor: refit. */
#ifndef REFIT_ATOM_BATCH_SUMS_H
#define REFIT_ATOM_BATCH_SUMS_H

#include "base/block_tree.h"
#include "refit/atom_batch.h"

struct batch_sums {
  const struct atom_batch *b; /* borrowed, like f and active; set even if memory is short */
  const struct refit_state *f;
  const idx *active;
  struct arena arena;
  struct block_tree tree; /* of own blocks, then of all; its width is the width of the present
                           * sums */
  real *out, *in;         /* nodes of trees, sent and received */
  idx *send, *receive;    /* [size] numbers of nodes */
  const real **from;      /* [size] the next node from each rank */
  int is_open;            /* the memory was allocated */
};

/* Allocate for sums of at most `width` numbers.  batch_sums_to_owner() then needs no further
 * memory.  Not collective; ERR_MEMORY. */
int batch_sums_open(struct batch_sums *s, const struct atom_batch *b, const struct refit_state *f,
                    idx width);
void batch_sums_close(struct batch_sums *s);

/* out[mine][width] <- the sums by (N.0) of values[segments][width] of all ranks.  Members with
 * active[member] = 0, which is the same on every rank, are skipped; NULL: all are active.
 * Collective. */
int batch_sums_to_owner(struct batch_sums *s, const real *values, idx width, const idx *active,
                        real *out);

/* *bytes <- the peak memory of these functions, from a dry run of their allocations.  Not
 * collective. */
int atom_batch_sums_bytes(const struct atom_batch *b, const struct refit_state *f, idx width,
                          gidx *bytes);

#endif
