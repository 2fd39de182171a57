/* SPDX-License-Identifier: BSD-3-Clause
 * What finding features will take, from the shapes of its rows and its options, before any row is
 * read.
 *
 * Floor: find. */
#ifndef FIND_FORECAST_H
#define FIND_FORECAST_H

#include "find/find.h"

struct find_forecast {
  gidx fitted, held; /* rows that are fitted, and that are held out */
  gidx updates;
  idx grown, batch; /* atoms at most; rows in memory at a time, about */
  double scores;    /* multiply-adds of scoring each row of an update once, all ranks together */
  gidx bytes;       /* host memory of rank 0, which takes the most, with the program */
  gidx gpu;         /* GPU memory; 0: no GPU is used */
};

/* For a task that has passed find_task_check().  With device cuda it works even if there is no GPU.
 * Not collective. */
int find_forecast(const struct find_task *task, struct comm *c, struct find_forecast *forecast);

#endif
