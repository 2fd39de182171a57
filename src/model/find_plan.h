/* SPDX-License-Identifier: BSD-3-Clause
 * The course of finding features: for each update the number of atoms, the number of active atoms
 * per row, and the rows (N.53).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_FIND_PLAN_H
#define MODEL_FIND_PLAN_H

#include "model/find_update.h"

struct find_plan {
  gidx rows;     /* fitted rows */
  idx k;         /* number of atoms at the end */
  int wide;      /* atoms before the end per atom that is kept, if there are enough rows */
  idx grown;     /* number of atoms before the end, of which k are kept */
  real l0;       /* mean active atoms per row, at the end */
  int each;      /* number of updates of a stage */
  int last;      /* number of further updates of the last stage */
  int joint;     /* number of updates after these, in which all atoms move together */
  gidx part;     /* approximately the largest number of rows of an update */
  int atom_rows; /* approximate rows of an update per present atom */
  idx batch;     /* approximate number of rows whose codes are chosen together */
  /* factors of l0, in the first and the last update before the `joint` ones */
  real first_factor, end_factor;
  real joint_factor;         /* factor of l0 in the `joint` updates */
  real settled;              /* after this part of the other updates no atom is replaced */
  struct find_blocks stages; /* the number of atoms of each stage */
  gidx batches;              /* number of batches in all rows */
};

/* One update. */
struct find_step {
  idx k;        /* atoms */
  real l0;      /* mean active atoms per row */
  gidx batches; /* number of batches of rows in the update */
  gidx first;   /* number of the first batch, counted from the first update */
  /* 1 for the `joint` updates at the end: all atoms move in one block, and rows that are described
   * well have higher weights */
  int is_last;
  int replaces; /* useless atoms (find_is_useless()), and near duplicates, are replaced */
};

/* Set grown, stages and batches from the other members. */
void find_plan_fill(struct find_plan *plan);
gidx find_plan_updates(const struct find_plan *plan);
struct find_step find_plan_step(const struct find_plan *plan, gidx update);
/* The blocks in which k atoms, sorted by falling frequency, are chosen and moved.  Each block ends
 * at twice the end of the block before it; the last one ends at k. */
void find_plan_blocks(idx k, struct find_blocks *blocks);

/* Batch `number`, counted through all epochs, has rows first .. first + count - 1 of an epoch.  An
 * epoch has plan->batches batches, as equal as possible. */
void find_plan_batch(const struct find_plan *plan, gidx number, gidx *epoch, gidx *first,
                     idx *count);

#endif
