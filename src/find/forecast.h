/* SPDX-License-Identifier: BSD-3-Clause
 * The work and the memory that finding features will take.  They follow from the shape of the rows
 * and from options, before any row is read.
 *
 * Floor: find. */
#ifndef FIND_FORECAST_H
#define FIND_FORECAST_H

#include "find/find.h"

struct find_forecast {
  gidx fitted, held; /* rows that are fitted, and that are held out */
  gidx updates;
  idx grown, batch; /* largest number of atoms; approximate number of rows of a batch */
  /* multiply-adds of scoring all rows of all updates once, on all ranks together */
  double scores;
  gidx bytes; /* host memory of rank 0, which takes the most, including the program */
  gidx gpu;   /* GPU memory; 0: no GPU is used */
};

/* For a task that has passed find_task_check().  With device cuda it works even if there is no GPU.
 * Not collective. */
int find_forecast(const struct find_task *task, struct comm *c, struct find_forecast *forecast);

#endif
