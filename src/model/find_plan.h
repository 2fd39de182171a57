/* SPDX-License-Identifier: BSD-3-Clause
 * The course of finding features: how many atoms there are in each update, how many are active in a
 * row, over which rows (N.53).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_FIND_PLAN_H
#define MODEL_FIND_PLAN_H

#include "model/find_update.h"

struct find_plan {
  gidx rows;                     /* that are fitted */
  idx k;                         /* atoms at the end */
  int wide;                      /* so many times as many are grown, if there are rows enough */
  idx grown;                     /* that is: atoms before the end, from which k are taken */
  real l0;                       /* active atoms a row, on average, at the end */
  int each;                      /* updates of a stage */
  int last;                      /* more of them in the last stage, */
  int joint;                     /* and behind these, in which all atoms move together */
  gidx part;                     /* rows of an update, about, at most */
  int atom_rows;                 /* rows of it for each atom that there is, about */
  idx batch;                     /* rows whose codes are chosen together, about */
  real first_factor, end_factor; /* of l0, from the one to the other, and */
  real joint_factor;             /* where all move together */
  real settled;                  /* part of the updates after which no atom is replaced */
  struct find_blocks stages;     /* atoms of each stage */
  gidx batches;                  /* of all rows */
};

/* One update. */
struct find_step {
  idx k;        /* atoms */
  real l0;      /* active atoms a row */
  gidx batches; /* of rows */
  gidx first;   /* number of the first, of all that were ever taken */
  int is_last;  /* all atoms move in one block, and rows that are described well count more */
  int replaces; /* twins and dead atoms are replaced */
};

/* Fill in atoms that are grown, stages and batches from the rest. */
void find_plan_fill(struct find_plan *plan);
gidx find_plan_updates(const struct find_plan *plan);
struct find_step find_plan_step(const struct find_plan *plan, gidx update);
/* The blocks in which k atoms, by falling frequency, are chosen and move: each ends at twice the
 * one before. */
void find_plan_blocks(idx k, struct find_blocks *blocks);

/* Rows first .. first + count - 1 of an epoch are batch `number`, counted from 0 through all
 * epochs: an epoch has plan->batches of them, as even as can be. */
void find_plan_batch(const struct find_plan *plan, gidx number, gidx *epoch, gidx *first,
                     idx *count);

#endif
