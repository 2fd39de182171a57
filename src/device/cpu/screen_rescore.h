/* SPDX-License-Identifier: BSD-3-Clause
 * Exact scores of the candidates of the certified filter, and the best of them.
 *
 * Floor: device; included by screen*.c only. */
#ifndef DEVICE_CPU_SCREEN_RESCORE_H
#define DEVICE_CPU_SCREEN_RESCORE_H

#include "device/cpu/screen_impl.h"

enum {
  SCREEN_BUCKETS = 32
}; /* limit for the ranges of slots; candidates of one range are rescored together */

/* Sort the candidates of n rows by ranges of slots, and put their exact values into size[]. */
void screen_rescore(const struct screen_plan *plan, struct screen_work *w, idx first, idx n);

/* The list of row first + row of the job <- its best candidates; their values must be exact. */
void screen_select(const struct screen_plan *plan, struct screen_work *w, idx first, idx row);

#endif
