/* SPDX-License-Identifier: BSD-3-Clause
 * Rows in the certified filter: their integers, thresholds, and lists of candidates.
 *
 * Floor: device; included by screen*.c only. */
#ifndef DEVICE_CPU_SCREEN_ROWS_H
#define DEVICE_CPU_SCREEN_ROWS_H

#include "device/cpu/cpu.h"

struct screen_plan;
struct screen_work;

/* A row and its candidates.  Sizes are those of screen_loops.h, in integer units. */
struct screen_row {
  real scale;       /* of the row's integers */
  real flat, steep; /* error bound of its sizes: flat + steep (scale of the frame) */
  float *size;      /* [capacity] sizes; after screen_rescore() exact values */
  idx *slot;        /* [capacity] slots; after screen_select() atoms */
  idx count, limit; /* the list is pruned when count reaches limit */
  float tau;        /* threshold: exact sizes of the support reach it */
  const idx *excluded;
  enum screen_path path;
};

/* Prepare rows first .. first + n - 1 of the job: their integers in groups (screen_loops.h), their
 * thresholds, and empty lists. */
void screen_rows_start(const struct screen_plan *plan, struct screen_work *w, idx first, idx n);

/* Add the candidates of panel `number` to the lists of n rows, and prefetch panel `next`. */
void screen_panel(const struct screen_plan *plan, struct screen_work *w, idx number, idx next,
                  idx n);

/* (C.6) Raise tau of the row to the top_k-th largest lower bound, and drop the candidates below it.
 * If the list is still full, the row takes the direct path. */
void screen_prune(const struct screen_plan *plan, struct screen_work *w, idx row);

#endif
