/* SPDX-License-Identifier: BSD-3-Clause
 * What finding features will take, known from the shapes of its rows and its options before any row
 * is read.
 *
 * Floor: find. */
#ifndef FIND_FORECAST_H
#define FIND_FORECAST_H

#include "find/find.h"

struct find_forecast {
  gidx fitted, held; /* rows that are fitted, and that judge */
  gidx updates;
  idx grown, batch; /* atoms at most, and rows that are in memory at a time, about */
  double scores;    /* multiply-adds of one score of each atom and row of an update, all ranks */
  gidx bytes;       /* of rank 0, which has the most, in memory of the host, with the program */
  gidx gpu;         /* of a GPU; 0: none is used */
};

/* For a task that passed find_task_check(); with device cuda also where there is no GPU.  Not
 * collective. */
int find_forecast(const struct find_task *task, struct comm *c, struct find_forecast *forecast);

#endif
