/* SPDX-License-Identifier: BSD-3-Clause
 * Finding features: from rows to atoms that fire where the features of the rows do (N.49 - N.55,
 * N.59).
 *
 * Floor: find.  Knows no files: rows come from a source, and results go to a sink.
 *
 * The dictionary grows in stages, each of several updates.  An update takes some rows, chooses
 * their active atoms, solves their codes, and then moves all atoms.  Atoms are chosen and moved
 * block after block, by falling frequency; an atom is chosen by thresholds, which are found with
 * the first rows of the update.
 *
 * Ranks divide the rows of a batch, and afterwards the atoms and columns of the sums over it.  No
 * sum is ever divided, so the atoms have the same bits on any number of ranks. */
#ifndef FIND_FIND_H
#define FIND_FIND_H

#include "base/phase.h"
#include "base/stop.h"
#include "comm/comm.h"
#include "model/find.h"
#include "model/find_plan.h"
#include "model/points.h"
#include "model/rows.h"

enum { FIND_HELD_MOST = 65536 }; /* about the most rows that are held out */

/* How rows are used and atoms are moved; the defaults are those of find_recipe(). */
struct find_recipe {
  struct find_plan plan; /* rows, stages and batches are filled in by find_run() */
  int looks;             /* further choices of atoms in an update */
  int end_looks;
  int relative; /* 1: scores are divided by the norm of the row's residual; its square counts as */
  real floor;   /* at least this share of the mean square of the rows */
  real last_floor; /* the same floor, for the weights of rows in the last updates */
  real rho;        /* draws codes to the means of their atoms, in updates */
  real last_rho;   /* the same, in the last updates */
  real ridge;      /* holds atoms where they are, in the unit of find_unit() */
  real last_ridge; /* the same, in the last updates, per 32,768 rows */
  real twin;       /* cosine above which the rarer of two atoms is replaced */
  real apart;      /* cosine above which it is dropped at the end */
};
struct find_recipe find_recipe(idx k, real l0);
/* The weight of a row in an update. left: the squared norm of its residual; square: the mean square
 * of the rows. */
real find_row_weight(const struct find_recipe *recipe, const struct find_step *step, real left,
                     real square);
/* The penalty that draws codes in an update. */
real find_rho(const struct find_recipe *recipe, const struct find_step *step);
/* The ridge of an update over `rows` rows; square: the mean square of the rows. */
real find_ridge(const struct find_recipe *recipe, const struct find_step *step, gidx rows,
                real square);

struct find_task {
  const struct row_source *rows;
  const struct row_source *held; /* held-out rows; NULL: windows of `rows` are held out */
  real held_out_fraction;        /* of the windows of `rows`; 0: nothing is held out */
  int center;                    /* subtract the column means of the fitted rows */
  struct find_recipe recipe;
  uint64_t seed;
  gidx beside; /* bytes that the caller holds, for the memory check */
  idx threads;
  const char *variant, *device, *kernels; /* struct device_options */
  const struct find_point *start;         /* resume from here; NULL: begin anew */
};

enum find_reason { FIND_LINE, FIND_STATE, FIND_END };

/* What the sink gets, on every rank; valid during the call. */
struct find_sink {
  void *self;
  int (*point)(void *self, const struct find_point *point, enum find_reason why); /* collective */
  struct stops stops;   /* asked before each batch; a stop loses the update so far */
  struct stops reading; /* asked while the mean is computed: a stop then loses all */
};

enum find_phase {
  FIND_START, /* reading rows for the mean; held-out rows */
  FIND_READ,  /* pools of rows */
  FIND_SCORES,
  FIND_CHOOSE, /* thresholds, and the cut of a batch */
  FIND_CODES,
  FIND_SHARE, /* exchanges of codes among ranks */
  FIND_SUMS,
  FIND_MOVE, /* moving atoms, and replacing some */
  FIND_GROW, /* new atoms of a stage */
  FIND_EVALUATE,
  FIND_WRITE, /* the sink */
  FIND_PHASES
};

struct find_result {
  gidx updates, all; /* updates done; updates in all */
  gidx fitted_rows, held_out_rows;
  int stopped;
  char device[280];
  struct phase phases[FIND_PHASES];
};

/* Check shapes and sizes before anything large is allocated.  Not collective.  ERR_INPUT,
 * ERR_USAGE. */
int find_task_check(const struct find_task *task);

/* Run the search.  Collective; the same status on every rank.  ERR_INPUT: what find_task_check()
 * refuses, values that are not finite, rows that do not vary, or a start that does not fit the
 * rows.  ERR_DEVICE.  ERR_MEMORY before any work. */
int find_run(const struct find_task *task, struct comm *c, const struct find_sink *sink,
             struct find_result *result);

#endif
