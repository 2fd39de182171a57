/* SPDX-License-Identifier: BSD-3-Clause
 * The memory and work of a fit, computed from the shapes of its rows and its options before any row
 * is read.
 *
 * Floor: fit.
 *
 * A forecast plans a fit with the functions of fit_run().  So update, groups of ranks, parts and
 * shapes are those of the fit. */
#ifndef FIT_FORECAST_H
#define FIT_FORECAST_H

#include "fit/fit.h"
#include "refit/layout.h"

struct fit_forecast {
  enum fit_update update;
  const char *device;      /* the task's; cpu if that is auto, and some rank finds no GPU */
  int alone;               /* every rank has all rows (refit/resident.h) */
  gidx fitted, held;       /* rows that are fitted; rows that are held out */
  gidx parts, part_rows;   /* parts of the fitted rows; rows of a part, on all ranks */
  gidx rank_rows;          /* the largest number of these rows on one rank */
  struct refit_memory m;   /* of rank 0, which needs the most memory */
  gidx beside;             /* part of m.total: arrays of the fit, the coder, copies of the atoms */
  gidx shared;             /* bytes of lists and Gram rows that a node holds once; m counts an equal
                            * share for each rank of the node; 0: each rank has its own */
  gidx gpu;                /* bytes of a GPU at least; 0: none is used */
  double routing, descent; /* multiply-adds of a sweep, all ranks; descent: 0 with UPDATE_ATOMS */
};

/* Forecast a task that passed fit_task_check() and has its minibatch settled.  device may be cuda
 * even if there is no GPU.  Too little memory is no error.  Collective; the same status on every
 * rank. */
int fit_forecast(const struct fit_task *task, struct comm *c, struct fit_forecast *forecast);

#endif
