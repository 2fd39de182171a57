/* SPDX-License-Identifier: BSD-3-Clause
 * What a training will take, from the shapes of its rows and its options, before any row is read.
 *
 * Floor: train. */
#ifndef TRAIN_FORECAST_H
#define TRAIN_FORECAST_H

#include "train/train.h"

/* Bytes of a rank; all are held at the same time. */
struct train_memory {
  gidx weights;  /* all weights with their moments, on every rank */
  gidx rows;     /* held-out rows, and arrays for the order of rows */
  gidx steps;    /* host memory of the steps and of their pools of rows */
  gidx evaluate; /* what evaluating held-out rows takes in addition */
  gidx beside;   /* task->beside */
  gidx gpu;      /* GPU memory; 0: no GPU is used */
  gidx total;    /* host memory, with the program itself */
};

struct train_forecast {
  gidx fitted, held;     /* numbers of fitted and of held-out rows */
  gidx steps, every;     /* number of steps; steps between two lines */
  double scores;         /* approximate multiply-adds of scores in all steps, of all ranks */
  struct train_memory m; /* of rank 0, which takes the most */
};

/* For a task that has passed train_task_check().  With device cuda it works even if there is no
 * GPU.  Not collective. */
int train_forecast(const struct train_task *task, struct comm *c, struct train_forecast *forecast);

#endif
