/* SPDX-License-Identifier: BSD-3-Clause
 * The update of all atoms at once (N.20): sum up the normal equations over all rows, then make
 * passes of block coordinate descent from the current atoms.
 *
 * Floor: fit.
 *
 * Each rank computes some rows of the Gram matrix (fit/gram.h), and some columns of the target and
 * of the atoms.  Columns are independent of each other.  Each rank has its columns of all rows, and
 * all lists of atoms and codes (fit/all_rows.h), in the order of rows, so every sum is one chain
 * (N.20).  Sums and atoms are on the device.  With one rank, the sums are copied to the host only
 * for update_get(). */
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
  idx passes;                  /* passes of the descent in one call of the device */
  struct buffer target, atoms; /* [k][end - begin] real */
  struct buffer diagonal;      /* [k] real: diagonal of gram when atoms last moved */
  struct buffer forget;        /* [k] unsigned char */
  struct buffer work;          /* work space of operations on the device */
  struct buffer energy;        /* [n] real: update_energies() */
  real *gathered;              /* [size][k][columns of the rank] */
  real *before;                /* [k][p] atoms before they moved; update_get() overwrites it with
                                * the target, and lends it */
  real *lent_gram,
      *lent_target; /* lent_gram: the whole matrix on rank 0; lent_target: a host side for the
                     * target, if it has none; NULL until they are needed */
  int is_ragged;    /* 1: rows differ in length; each sum block is padded to its longest row */
  idx *padded;      /* [ROW_BLOCK][s] a padded sum block, like the next */
  float *padded_codes;
  idx *stamp;          /* [k] 1 + the row of the block that last had the atom */
  struct all_rows all; /* used by several ranks if not ragged */
  int has_columns;     /* 1: it has the columns of the state's rows; the caller clears it */
  /* If ragged: a sum block, which each rank in turn sends to all. */
  struct buffer slots; /* [ROW_BLOCK][s] idx */
  struct buffer codes; /* [ROW_BLOCK][s] float */
  struct buffer rows;  /* [ROW_BLOCK][p] float */
  idx *counts;         /* [size] */
  struct arena arena;
};

/* Open for a state with d = 1, and at most `most` rows of all ranks; the device may be a GPU.  All
 * sums are 0.  ERR_MEMORY.  update_free() is safe on a zeroed struct; call it before the device is
 * closed.  update_open() is collective, but its status is not agreed; update_free() is collective
 * if ranks share the Gram matrix. */
int update_open(struct update *u, struct refit_state *f, struct device *device, gidx most);
void update_free(struct update *u);

/* Multiply the sums by beta, then add the rows of the state with their codes.  If has_columns is 0,
 * their columns are exchanged first.  Collective; the same status on every rank. */
int update_add(struct update *u, const struct update_rows *rows, real beta);

/* The same for rows whose supports differ in length, in host memory.  Earlier sums are discarded.
 * update_open_ragged() opens an update for these rows alone; s of the state is the length of the
 * longest row. */
struct update_ragged {
  const gidx *start;  /* [n + 1] */
  const idx *atoms;   /* entries */
  const float *codes; /* entries */
  const float *x;     /* [n][p] */
  const idx *longest; /* [sum blocks of all ranks] length of the longest row of each */
};
int update_open_ragged(struct update *u, struct refit_state *f, struct device *device);
int update_add_ragged(struct update *u, const struct update_ragged *rows);

/* Compute atoms from the sums: passes of the descent, then unit norm.  All ranks get the frames.
 * Atoms without codes stay.  steps[k].accepted <- 1 for the atoms that moved; the determinants in
 * steps[] are NaN, all else is 0.  Collective; the same status on every rank. */
int update_apply(struct update *u, idx passes, struct atom_step *steps);

/* energy[n] of the update <- the energy of the residual of each row of this rank, with the frames
 * of the state and the codes of `rows` (N.3r).  Not collective. */
int update_energies(struct update *u, const struct update_rows *rows);

/* Set the sums of atoms with forget[k] to 0.  Every rank calls it. */
int update_clear(struct update *u, const unsigned char *forget);

/* update_get(): after update_apply(), lends the whole sums, (*gram)[k][k] and (*target)[k][p], on
 * rank 0, until the next call; other ranks must not use the pointers.  update_put(): sets the sums
 * of all ranks from the whole sums on rank 0.  Collective. */
int update_get(struct update *u, const real **gram, const real **target);
int update_put(struct update *u, const real *gram, const real *target);

/* *bytes <- host memory of an update beside its buffers, which dev counts.  dev is dry; its kind is
 * the kind of the later device, or none.  On a CPU the total is the sum of *bytes, the bytes that
 * dev counts, and cpu_normal_beside().  Not collective. */
int update_plan(const struct refit_state *f, struct device *dev, gidx *bytes);

/* The same for update_open_ragged(). */
int update_plan_ragged(const struct refit_state *f, struct device *dev, gidx *bytes);

/* *bytes <- the memory of an update on a CPU.  A function of type batch_bytes_of. */
int update_bytes(const struct refit_state *f, const struct atom_batch *b, idx q, gidx *bytes);

#endif
