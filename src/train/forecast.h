/* SPDX-License-Identifier: BSD-3-Clause
 * What a training will take, known from the shapes of its rows and its options before any row is
 * read.
 *
 * Floor: train. */
#ifndef TRAIN_FORECAST_H
#define TRAIN_FORECAST_H

#include "train/train.h"

/* Bytes of a rank, all at the same time. */
struct train_memory {
  gidx weights;  /* with their moments, all of them on every rank */
  gidx rows;     /* pools of rows, and held-out rows */
  gidx steps;    /* what steps work with in memory of the host */
  gidx evaluate; /* what the held-out rows take beside */
  gidx beside;   /* task->beside */
  gidx gpu;      /* of a GPU's memory; 0: none is used */
  gidx total;    /* of the host, with the program itself */
};

struct train_forecast {
  gidx fitted, held; /* rows that are learned from, and that judge */
  gidx steps, every; /* steps, and between two lines */
  double scores;     /* multiply-adds of the products with the encoder in all steps, all ranks */
  struct train_memory m; /* of rank 0, which has the most */
};

/* For a task that passed train_task_check(); with device cuda also where there is no GPU.  Not
 * collective. */
int train_forecast(const struct train_task *task, struct comm *c, struct train_forecast *forecast);

#endif
