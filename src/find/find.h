/* SPDX-License-Identifier: BSD-3-Clause
 * Finding features: from rows to atoms that fire where the features of the rows do (N.49 - N.55,
 * N.59).
 *
 * Floor: find.  Knows no files: rows come from a source, and what is reached goes to a sink.
 *
 * The dictionary grows in stages.  An update chooses the active atoms of some rows block after
 * block of falling frequency, by thresholds that its first rows give, solves their codes, and moves
 * all atoms, block after block.  Ranks share out the rows of a batch, then the atoms and columns of
 * the sums, so that none is ever divided: the atoms are the same bits on any number of ranks. */
#ifndef FIND_FIND_H
#define FIND_FIND_H

#include "base/phase.h"
#include "base/stop.h"
#include "comm/comm.h"
#include "model/find.h"
#include "model/find_plan.h"
#include "model/points.h"
#include "model/rows.h"

enum { FIND_HELD_MOST = 65536 }; /* rows, about, that are held out at most */

/* What is done with the rows; the defaults are those of find_recipe(). */
struct find_recipe {
  struct find_plan plan; /* rows, stages and batches are filled in by find_run() */
  int looks;             /* how often atoms are chosen again in an update, and in the end */
  int end_looks;
  int relative;    /* scores count by the size of what is left of a row, */
  real floor;      /* which is no less than this part of the rows' mean square */
  real last_floor; /* and what is little of it where rows are weighted in the last updates */
  real rho;        /* what draws codes to the means of their atoms, in updates, and */
  real last_rho;   /* in the last ones */
  real ridge;      /* what holds atoms where they are, in the unit of find_unit(), and */
  real last_ridge; /* in the last updates, for each 32,768 rows */
  real twin;       /* cosine above which the rarer of two atoms is replaced, and */
  real apart;      /* above which it is not taken at the end */
};
struct find_recipe find_recipe(idx k, real l0);
/* How much a row counts in an update, of which `left` is left; square: the rows' mean square. */
real find_row_weight(const struct find_recipe *recipe, const struct find_step *step, real left,
                     real square);
/* What draws codes in an update. */
real find_rho(const struct find_recipe *recipe, const struct find_step *step);
/* The ridge of an update over so many rows; square: as above. */
real find_ridge(const struct find_recipe *recipe, const struct find_step *step, gidx rows,
                real square);

struct find_task {
  const struct row_source *rows;
  const struct row_source *held; /* rows to judge by; NULL: windows of `rows` are held out */
  real held_out_fraction;        /* of the windows, for that; 0: nothing is held out */
  int center;                    /* subtract the column means of the fitted rows */
  struct find_recipe recipe;
  uint64_t seed;
  gidx beside; /* bytes that the caller holds, for the memory check */
  idx threads;
  const char *variant, *device, *kernels; /* struct device_options */
  const struct find_point *start;         /* go on from here; NULL: begin anew */
};

enum find_reason { FIND_LINE, FIND_STATE, FIND_END };

/* What is handed over, valid during the call, on every rank. */
struct find_sink {
  void *self;
  int (*point)(void *self, const struct find_point *point, enum find_reason why); /* collective */
  struct stops stops;   /* asked before each batch: what is done of the update is then lost */
  struct stops reading; /* asked while the rows are read for their mean: all is then lost */
};

enum find_phase {
  FIND_START, /* rows looked at, mean, held-out rows read */
  FIND_READ,  /* pools of rows */
  FIND_SCORES,
  FIND_CHOOSE, /* thresholds, and the cut of a batch */
  FIND_CODES,
  FIND_SHARE, /* what ranks tell each other of codes */
  FIND_SUMS,
  FIND_MOVE, /* atoms, and those that are replaced */
  FIND_GROW, /* new atoms of a stage */
  FIND_EVALUATE,
  FIND_WRITE, /* the sink */
  FIND_PHASES
};

struct find_result {
  gidx updates, all; /* done, of how many */
  gidx fitted_rows, held_out_rows;
  int stopped;
  char device[280];
  struct phase phases[FIND_PHASES];
};

/* What shapes and sizes say before anything of their size is allocated.  Not collective.
 * ERR_INPUT, ERR_USAGE. */
int find_task_check(const struct find_task *task);

/* Collective; the same status on every rank.  ERR_INPUT: what find_task_check() refuses, values
 * that are not finite, rows that do not vary, or a start that does not fit the rows; ERR_DEVICE;
 * ERR_MEMORY before any work. */
int find_run(const struct find_task *task, struct comm *c, const struct find_sink *sink,
             struct find_result *result);

#endif
