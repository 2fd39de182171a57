/* SPDX-License-Identifier: BSD-3-Clause
 * Finding features: from rows, atoms are found that fire in the rows that have a feature (N.49 -
 * N.55, N.59).
 *
 * Floor: find.  Knows no files: rows come from a source, and results go to a sink.
 *
 * The dictionary grows in stages, each of several updates.  An update takes some rows, chooses
 * their active atoms, solves their codes, and then moves all atoms.  Atoms are chosen and moved
 * block after block, by falling frequency; an atom is chosen by thresholds, which are found with
 * the first rows of the update.
 *
 * Ranks divide the rows of a batch when codes are found, and the entries of the sums over rows when
 * sums are computed.  Each entry is summed by one rank over all rows.  So the atoms have the same
 * bits on any number of ranks. */
#ifndef FIND_FIND_H
#define FIND_FIND_H

#include "base/phase.h"
#include "base/stop.h"
#include "comm/comm.h"
#include "model/find.h"
#include "model/find_plan.h"
#include "model/points.h"
#include "model/rows.h"

enum { FIND_HELD_MOST = 65536 }; /* approximate largest number of held-out rows */

/* How rows are used and atoms are moved; find_recipe() gives the defaults. */
struct find_recipe {
  struct find_plan plan; /* rows, stages and batches are filled in by find_run() */
  int looks;             /* repeated choices of atoms in an update, after the first */
  int end_looks;         /* the same number for the encoder of the result */
  /* 1: scores are divided by sqrt(s + f), s: the squared norm of the row's residual */
  int relative;
  /* f, as a share of the mean squared norm of the rows; also for the weights of rows */
  real floor;
  /* instead of `floor`, for the weights of rows in the last updates (find_step.is_last) */
  real last_floor;
  real rho;        /* penalty that draws codes towards the means of their atoms, in updates */
  real last_rho;   /* the same, in the last updates */
  real ridge;      /* penalty on moving atoms, in the unit of find_unit() */
  real last_ridge; /* the same, in the last updates, per 32,768 rows */
  real twin;       /* if two atoms have a larger cosine, the rarer one is replaced */
  real apart;      /* if two atoms have a larger |cosine|, the rarer one is dropped at the end */
};
struct find_recipe find_recipe(idx k, real l0);
/* The weight of a row in an update.  left: the squared norm of its residual; square: the mean
 * squared norm of the rows. */
real find_row_weight(const struct find_recipe *recipe, const struct find_step *step, real left,
                     real square);
/* The penalty rho that draws codes towards their means in an update. */
real find_rho(const struct find_recipe *recipe, const struct find_step *step);
/* The ridge (penalty on moving atoms) of an update over `rows` rows; square: the mean squared norm
 * of the rows. */
real find_ridge(const struct find_recipe *recipe, const struct find_step *step, gidx rows,
                real square);

struct find_task {
  const struct row_source *rows;
  const struct row_source *held; /* held-out rows; NULL: windows (model/split.h) of `rows` are */
  real held_out_fraction;        /* share of the windows of `rows` to hold out; 0: none */
  int center;                    /* subtract the column means of the fitted rows */
  struct find_recipe recipe;
  uint64_t seed;
  gidx beside; /* bytes of other memory that the caller holds, for the memory check */
  idx threads;
  const char *variant, *device, *kernels; /* struct device_options */
  const struct find_point *start;         /* resume from here; NULL: begin anew */
};

enum find_reason { FIND_LINE, FIND_STATE, FIND_END };

/* The functions of the sink are called on every rank; a point is valid during the call. */
struct find_sink {
  void *self;
  int (*point)(void *self, const struct find_point *point, enum find_reason why); /* collective */
  struct stops stops;   /* asked before each batch; a stop loses the work on the present update */
  struct stops reading; /* asked while the mean is computed; a stop then loses all work */
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
  gidx updates, all; /* updates that were done; updates of the whole search */
  gidx fitted_rows, held_out_rows;
  int stopped;
  char device[280];
  struct phase phases[FIND_PHASES];
};

/* Check shapes and sizes before anything large is allocated.  Not collective.  ERR_INPUT,
 * ERR_USAGE. */
int find_task_check(const struct find_task *task);

/* Run the search.  Collective; the same status on every rank.  ERR_INPUT: find_task_check() fails,
 * values are not finite, rows do not vary, or the start does not belong to the rows.  ERR_DEVICE.
 * ERR_MEMORY before any work. */
int find_run(const struct find_task *task, struct comm *c, const struct find_sink *sink,
             struct find_result *result);

#endif
