/* SPDX-License-Identifier: BSD-3-Clause
 * Sums over the rows of the atoms of a batch, each made at the atom's owner by (N.0).
 *
 * Floor: refit. */
#ifndef REFIT_ATOM_BATCH_SUMS_H
#define REFIT_ATOM_BATCH_SUMS_H

#include "base/block_tree.h"
#include "refit/atom_batch.h"

struct batch_sums {
  const struct atom_batch *b; /* borrowed, as are the next two; set also where there is no memory */
  const struct refit_state *f;
  const idx *active;
  struct arena arena;
  struct block_tree tree; /* of own blocks, then of all; its width is that of the sums in work */
  real *out, *in;         /* nodes sent and received */
  idx *send, *receive;    /* [size] nodes */
  const real **from;      /* [size] the next node that came from each rank */
  int is_open;            /* has it its memory? */
};

/* What sums of at most `width` take, which then need no memory.  Not collective; ERR_MEMORY. */
int batch_sums_open(struct batch_sums *s, const struct atom_batch *b, const struct refit_state *f,
                    idx width);
void batch_sums_close(struct batch_sums *s);

/* out[mine][width] <- the sums by (N.0) of values[segments][width] of all ranks; members with
 * active[member] 0, which every rank knows, are left alone.  NULL: all are active.  Collective. */
int batch_sums_to_owner(struct batch_sums *s, const real *values, idx width, const idx *active,
                        real *out);

/* *bytes <- what that takes at most while it runs: its allocations, run dry.  Not collective. */
int atom_batch_sums_bytes(const struct atom_batch *b, const struct refit_state *f, idx width,
                          gidx *bytes);

#endif
