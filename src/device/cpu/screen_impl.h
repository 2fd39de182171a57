/* SPDX-License-Identifier: BSD-3-Clause
 * Internals of the certified filter: the plan of a job, and the workspace of a thread.
 *
 * Floor: device; included by screen*.c only.
 *
 * screen.c loops over blocks of rows; screen_atoms.c packs the dictionary; screen_rows.c makes the
 * lists of candidates; screen_rescore.c computes their exact values. */
#ifndef DEVICE_CPU_SCREEN_IMPL_H
#define DEVICE_CPU_SCREEN_IMPL_H

#include "device/cpu/cpu.h"
#include "device/cpu/screen_rows.h"

/* What the threads of a job share. */
struct screen_plan {
  const struct cpu_state *device;
  struct route_job *job;
  idx capacity, block_rows, blocks, panels;
  idx stride; /* from one visited panel to the next; coprime to the number of panels */
  idx next;   /* the first block that no thread has taken yet */
  idx *left;  /* [n] 1: the row takes the direct path */
};

/* Work arrays of one thread; height is the number of rows of a group. */
struct screen_work {
  int8_t *q;            /* [4 quads, rounded up to a multiple of 8] */
  int8_t *groups;       /* [block_rows][4 quads] */
  int32_t *start;       /* [block_rows] */
  float *slope, *reach; /* [block_rows] */
  struct screen_row *rows;
  float *sizes;         /* [height][lanes] */
  uint32_t *hits;       /* [height] */
  idx *sorted;          /* [capacity] */
  float *lower, *upper; /* [capacity] for the row that is being pruned */
  idx *buckets; /* [block_rows][SCREEN_BUCKETS + 1] a row's first candidate in each bucket */
  struct screen_counts counts;
};

#endif
