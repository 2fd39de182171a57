/* SPDX-License-Identifier: BSD-3-Clause
 * The certified filter from inside: a plan, a thread's work, and what its files do for each other.
 *
 * cpu_filter.c runs over blocks of rows, cpu_filter_atoms.c packs the dictionary, cpu_filter_rows.c
 * has the lists of candidates, cpu_filter_exact.c their exact values. */
#ifndef DEVICE_CPU_FILTER_INSIDE_H
#define DEVICE_CPU_FILTER_INSIDE_H

#include "device/cpu.h"

/* Atoms whose candidates are evaluated together, at most. */
enum { BUCKETS = 32 };

/* A row and its candidates. */
struct filter_row {
  real scale;       /* of its integers */
  real flat, steep; /* its sizes err by at most flat + steep (scale of the frame) */
  float *size;      /* [capacity] in integers; at last exact values */
  idx *slot;        /* [capacity] at last atoms */
  idx count, limit; /* cut when count reaches limit */
  float tau;        /* the exact support has no size below this */
  const idx *excluded;
  enum filter_path path;
};

struct filter_plan {
  const struct cpu_state *device;
  struct route_job *job;
  idx capacity, block_rows, blocks, panels;
  idx stride; /* between panels that follow each other, coprime to their number */
  idx next;   /* block, shared by the threads */
  idx *left;  /* [n] 1: takes the exact path */
};

/* What one thread works with; height: rows of a group. */
struct filter_work {
  int8_t *q;            /* [4 quads, padded to eights] */
  int8_t *groups;       /* [block_rows][4 quads] */
  int32_t *start;       /* [block_rows] */
  float *slope, *reach; /* [block_rows] */
  struct filter_row *rows;
  float *sizes;         /* [height][lanes] */
  uint32_t *hits;       /* [height] */
  idx *sorted;          /* [capacity] */
  float *lower, *upper; /* [capacity] of the row that is being cut */
  idx *buckets; /* [block_rows][BUCKETS + 1] where each bucket of a row's candidates begins */
  struct filter_counts counts;
};

/* Rows first .. first + n - 1 of the job: their integers, thresholds and empty lists. */
void filter_rows_start(const struct filter_plan *plan, struct filter_work *w, idx first, idx n);

/* Add the candidates of one panel; `next` is the panel that follows. */
void filter_panel(const struct filter_plan *plan, struct filter_work *w, idx number, idx next,
                  idx n);

/* (C.6) Raise the row's tau, and keep what it does not exclude. */
void filter_cut(const struct filter_plan *plan, struct filter_work *w, idx row);

/* Exact values of all candidates of a block, in their rows' size[], their slots sorted; then the
 * support of one row from them. */
void filter_evaluate(const struct filter_plan *plan, struct filter_work *w, idx first, idx n);
void filter_finish(const struct filter_plan *plan, struct filter_work *w, idx first, idx row);

#endif
