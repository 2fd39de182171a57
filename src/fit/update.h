/* SPDX-License-Identifier: BSD-3-Clause
 * The update of all atoms at once (N.20): normal equations of all rows, and a pass of block
 * coordinate descent from the atoms as they are.
 *
 * Floor: fit.
 *
 * Every rank holds the Gram matrix, [k][k]: of its rows it adds up an own part, which then goes to
 * all.  Of the target and of the atoms it has some columns, which are independent of the others.
 * Rows stream past all ranks in their order, so that every sum is one chain. */
#ifndef FIT_UPDATE_H
#define FIT_UPDATE_H

#include "device/normal.h"
#include "refit/atom_batch.h"

struct update {
  struct refit_state *f; /* borrowed */
  struct dense dense;
  idx first, count;     /* own rows of the Gram matrix */
  idx begin, end;       /* own columns */
  real *gram;           /* [k][k] */
  real *target, *atoms; /* [k][end - begin] */
  real *work;           /* [NORMAL_BLOCK][end - begin] */
  real *gathered;       /* [size][k][columns of the rank] */
  real *before;         /* [k][p] atoms before they moved; then lent */
  /* A sum block on its way past all ranks: */
  idx *slots;   /* [ROW_BLOCK][s] */
  float *codes; /* [ROW_BLOCK][s] */
  float *rows;  /* [ROW_BLOCK][p]; NULL on one rank */
  idx *start, *entry;
  idx *counts; /* [size] */
  struct arena arena;
};

/* For a state with d = 1; sums are 0.  ERR_MEMORY.  update_free() is safe on a zeroed struct. */
int update_open(struct update *u, struct refit_state *f);
void update_free(struct update *u);

/* Add the state's rows with their codes, as a sweep's end left them; what was added before is
 * multiplied by beta first.  Collective; the same status on every rank. */
int update_add(struct update *u, real beta);

/* Make atoms of the sums: passes of the descent, then unit norm.  Frames on every rank; those
 * without codes stay.  *moved <- atoms with codes.  Collective; the same status on every rank. */
int update_apply(struct update *u, idx passes, gidx *moved);

/* Nothing is known any more of the atoms with forget[k]: their sums are 0.  Not collective. */
void update_forget(struct update *u, const unsigned char *forget);

/* The sums as a whole, (*gram)[k][k] and (*target)[k][p]: get lends them on every rank after
 * update_apply(), until the next call; put takes them there.  get is collective. */
int update_get(struct update *u, const real **gram, const real **target);
void update_put(struct update *u, const real *gram, const real *target);

/* A batch_bytes_of: what update_open() takes. */
int update_bytes(const struct refit_state *f, const struct atom_batch *b, idx q, gidx *bytes);

#endif
