/* SPDX-License-Identifier: BSD-3-Clause
 * Rows before the certified filter: their integers, thresholds, and lists of candidates.
 *
 * Floor: device; included by screen*.c only. */
#ifndef DEVICE_CPU_SCREEN_ROWS_H
#define DEVICE_CPU_SCREEN_ROWS_H

#include "device/cpu/cpu.h"

struct screen_plan;
struct screen_work;

/* A row and its candidates.  A *size* is what the score of a candidate is, in integers. */
struct screen_row {
  real scale;       /* of its integers */
  real flat, steep; /* its sizes err by at most flat + steep (scale of the frame) */
  float *size;      /* [capacity] in integers; after screen_rescore exact values */
  idx *slot;        /* [capacity] after screen_select atoms */
  idx count, limit; /* the list is pruned when count reaches limit */
  float tau;        /* the exact support has no size below this */
  const idx *excluded;
  enum screen_path path;
};

/* Prepare rows first .. first + n - 1 of the job: their integers in groups[..][4 quads / columns]
 * [rows][columns], padded with zeros, their thresholds, and empty lists. */
void screen_rows_start(const struct screen_plan *plan, struct screen_work *w, idx first, idx n);

/* Add the candidates of one panel to the lists of n rows; panel `next` is prefetched meanwhile. */
void screen_panel(const struct screen_plan *plan, struct screen_work *w, idx number, idx next,
                  idx n);

/* (C.6) Raise the row's tau to its top_k-th lower bound, and drop the candidates that it excludes.
 * A row that is still full takes the direct path. */
void screen_prune(const struct screen_plan *plan, struct screen_work *w, idx row);

#endif
