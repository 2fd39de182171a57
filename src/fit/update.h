/* SPDX-License-Identifier: BSD-3-Clause
 * The update of all atoms at once (N.20): normal equations of all rows, and a pass of block
 * coordinate descent from the atoms as they are.
 *
 * Floor: fit.
 *
 * A rank adds up rows of the Gram matrix (fit/gram.h), and has some columns of the target and of
 * the atoms, which are independent of the others.  It has its columns of all rows, and the lists of
 * all (fit/all_rows.h), in their order, so that every sum is one chain.  Sums and atoms are on the
 * device; on one rank nothing comes from there but atoms, and what update_get() lends. */
#ifndef FIT_UPDATE_H
#define FIT_UPDATE_H

#include "device/normal.h"
#include "fit/all_rows.h"
#include "fit/gram.h"
#include "refit/refit.h"

struct update {
  struct refit_state *f; /* borrowed */
  struct device *device; /* borrowed */
  idx begin, end;        /* own columns */
  struct gram gram;
  idx passes;                  /* of the descent in one call of the device */
  struct buffer target, atoms; /* [k][end - begin] real */
  struct buffer diagonal;      /* [k] real: of gram, as atoms last moved */
  struct buffer forget;        /* [k] unsigned char */
  struct buffer work;          /* of the device's operations */
  struct buffer energy;        /* [n] real: update_energies() */
  real *gathered;              /* [size][k][columns of the rank] */
  real *before;                /* [k][p] atoms before they moved; then lent */
  real *lent_gram,
      *lent_target; /* of rank 0, and where the target has no host side; NULL until then */
  int is_ragged;    /* rows come by sum blocks, padded to the longest of theirs */
  idx *padded;      /* [ROW_BLOCK][s] of such a block, as is the next */
  float *padded_codes;
  idx *stamp;          /* [k] 1 + the row of the block that last had the atom */
  struct all_rows all; /* of several ranks, where it is not ragged */
  int has_columns;     /* it has those of the state's rows; the caller's to clear */
  /* A sum block on its way past all ranks, where it is ragged: */
  struct buffer slots; /* [ROW_BLOCK][s] idx */
  struct buffer codes; /* [ROW_BLOCK][s] float */
  struct buffer rows;  /* [ROW_BLOCK][p] float */
  idx *counts;         /* [size] */
  struct arena arena;
};

/* For a state with d = 1, and at most so many rows of all ranks, to compute on a device, which may
 * be a GPU; sums are 0.  ERR_MEMORY.  update_free() is safe on a zeroed struct, and comes before
 * the device is closed.  Both are collective where ranks share the Gram matrix. */
int update_open(struct update *u, struct refit_state *f, struct device *device, gidx most);
void update_free(struct update *u);

/* Add rows, those of the state, with their codes; of rows without has_columns columns travel first;
 * what was added before is multiplied by beta first.  Collective; the same status on every rank. */
int update_add(struct update *u, const struct update_rows *rows, real beta);

/* The same of rows whose supports differ in length, all of the host: what was added before is gone.
 * update_open_ragged() is for these alone; the state's s is the length of the longest row. */
struct update_ragged {
  const gidx *start;  /* [n + 1] */
  const idx *atoms;   /* entries */
  const float *codes; /* entries */
  const float *x;     /* [n][p] */
  const idx *longest; /* [sum blocks of all ranks] of each the length of its longest row */
};
int update_open_ragged(struct update *u, struct refit_state *f, struct device *device);
int update_add_ragged(struct update *u, const struct update_ragged *rows);

/* Make atoms of the sums: passes of the descent, then unit norm.  Frames on every rank; those
 * without codes stay.  steps[k] <- accepted for atoms with codes, nothing else.  Collective; the
 * same status on every rank. */
int update_apply(struct update *u, idx passes, struct atom_step *steps);

/* energy[n] of the update <- of each of this rank's rows that of its residual by the state's frames
 * (N.3r), the codes being those of `rows`.  Not collective. */
int update_energies(struct update *u, const struct update_rows *rows);

/* Nothing is known any more of the atoms with forget[k]: their sums are 0.  Every rank calls it. */
int update_clear(struct update *u, const unsigned char *forget);

/* The sums as a whole, (*gram)[k][k] and (*target)[k][p]: get lends them on rank 0 after
 * update_apply(), until the next call, and something else on the others; put takes them from rank
 * 0. Collective. */
int update_get(struct update *u, const real **gram, const real **target);
int update_put(struct update *u, const real *gram, const real *target);

/* bytes <- what an update takes on the host beside the buffers, which dev counts; dev is dry, and
 * has the kind of the one to come or none.  On the CPU the two together are what is taken, with
 * cpu_normal_beside().  Not collective. */
int update_plan(const struct refit_state *f, struct device *dev, gidx *bytes);

int update_plan_ragged(const struct refit_state *f, struct device *dev, gidx *bytes);

/* A batch_bytes_of: what an update takes on the CPU. */
int update_bytes(const struct refit_state *f, const struct atom_batch *b, idx q, gidx *bytes);

#endif
