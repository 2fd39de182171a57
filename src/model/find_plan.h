/* SPDX-License-Identifier: BSD-3-Clause
 * The course of finding features: for each update the number of atoms, of active atoms per row, and
 * the rows (N.53).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_FIND_PLAN_H
#define MODEL_FIND_PLAN_H

#include "model/find_update.h"

struct find_plan {
  gidx rows;     /* fitted rows */
  idx k;         /* atoms at the end */
  int wide;      /* atoms that grow for each one that is kept, if there are enough rows */
  idx grown;     /* atoms before the end, of which k are kept */
  real l0;       /* mean active atoms per row, at the end */
  int each;      /* updates of a stage */
  int last;      /* further updates of the last stage */
  int joint;     /* and after these, updates in which all atoms move together */
  gidx part;     /* most rows of an update, about */
  int atom_rows; /* rows of an update per atom that there is, about */
  idx batch;     /* rows whose codes are chosen together, about */
  real first_factor, end_factor; /* of l0, in the first and the last update */
  real joint_factor;             /* of l0, while all atoms move together */
  real settled;                  /* part of the updates after which no atom is replaced */
  struct find_blocks stages;     /* numbers of atoms of the stages */
  gidx batches;                  /* in all rows */
};

/* One update. */
struct find_step {
  idx k;        /* atoms */
  real l0;      /* mean active atoms per row */
  gidx batches; /* of rows, in the update */
  gidx first;   /* number of the first batch, counted from the first update */
  int is_last;  /* one of the `joint` updates at the end: all atoms move in one block, and well
                 * described rows count more */
  int replaces; /* dead atoms, and those that nearly equal another one, are replaced */
};

/* Set grown, stages and batches from the other members. */
void find_plan_fill(struct find_plan *plan);
gidx find_plan_updates(const struct find_plan *plan);
struct find_step find_plan_step(const struct find_plan *plan, gidx update);
/* The blocks, by falling frequency, in which k atoms are chosen and moved: each block ends at twice
 * the end of the one before. */
void find_plan_blocks(idx k, struct find_blocks *blocks);

/* Batch `number`, counted through all epochs, has rows first .. first + count - 1 of an epoch.  An
 * epoch has plan->batches batches, as equal as possible. */
void find_plan_batch(const struct find_plan *plan, gidx number, gidx *epoch, gidx *first,
                     idx *count);

#endif
