/* SPDX-License-Identifier: BSD-3-Clause
 * What a fit will take, known from the shapes of its rows and its options before any row is read.
 *
 * Floor: fit.
 *
 * The functions that plan a fit are run as fit_run() runs them, so that the forecast cannot differ
 * from what is then checked. */
#ifndef FIT_FORECAST_H
#define FIT_FORECAST_H

#include "fit/fit.h"
#include "refit/layout.h"

struct fit_forecast {
  enum fit_update update;
  const char *device;      /* of the task; cpu where it is auto, and a rank finds no GPU */
  int alone;               /* every rank has all rows (refit/resident.h) */
  gidx fitted, held;       /* rows that are fitted, and that judge */
  gidx parts, part_rows;   /* rows that are in memory at a time, of all ranks */
  gidx rank_rows;          /* of these at most with one rank */
  struct refit_memory m;   /* of rank 0, which has the most */
  gidx beside;             /* of its total: what codes rows, and copies of the atoms */
  gidx shared;             /* bytes of lists and Gram rows that are once a node, of which m
                            * has an even part for each of its ranks; 0: each has its own */
  gidx gpu;                /* bytes of a GPU at least; 0: none is used */
  double routing, descent; /* multiply-adds of a sweep, all ranks; descent 0: of update atoms */
};

/* For a task that passed fit_task_check(), with its minibatch settled; with device cuda also where
 * there is no GPU.  Too little memory is no error.  Collective; the same status on every rank. */
int fit_forecast(const struct fit_task *task, struct comm *c, struct fit_forecast *forecast);

#endif
