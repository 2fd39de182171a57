/* SPDX-License-Identifier: BSD-3-Clause
 * The memory of the terminal pass, known before any work.
 *
 * Floor: terminal.  Not collective. */
#ifndef TERMINAL_LAYOUT_H
#define TERMINAL_LAYOUT_H

#include "terminal/terminal.h"

/* Upper bounds in bytes, from dry allocations with the largest possible number of directions. */
struct terminal_memory {
  gidx border;     /* a number, not bytes: the order of S */
  int ranks;       /* on this machine */
  gidx fit;        /* of each rank, while directions are found */
  gidx inputs;     /* of rank 0, from then on: directions, atoms, their hashes */
  gidx duplicates; /* in addition, while near duplicates are found */
  gidx schur, lapack, workspace, results; /* instead of `duplicates`, once these are found */
  gidx min;                               /* the smallest workspace */
  gidx total;                             /* on this rank's machine */
  /* Memory of rank 0's GPU, which then holds S; 0: there is no GPU.  `gpu` is the larger of two
   * numbers: the sum of the other three, and the memory for near duplicates, which are found before
   * S is formed. */
  gidx gpu_schur, gpu_factor, gpu_rows, gpu;
};

/* For the device of rank 0, which may be dry; other ranks do not use dev.  ERR_INPUT if the inputs
 * do not fit together. */
int terminal_memory(const struct terminal_task *t, struct comm *c, const struct device *dev,
                    struct terminal_memory *m);

/* ERR_MEMORY with the numbers if the total is more than task->present; ERR_USAGE if the workspace
 * is too small. */
int terminal_fits(const struct terminal_task *t, struct comm *c, const struct device *dev);

#endif
