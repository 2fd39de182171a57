/* SPDX-License-Identifier: BSD-3-Clause
 * The memory of the terminal pass, known before any work.
 *
 * Floor: terminal.  Not collective. */
#ifndef TERMINAL_LAYOUT_H
#define TERMINAL_LAYOUT_H

#include "terminal/terminal.h"

/* Upper bounds in bytes: the pass's allocations, run dry with the most directions that there can
 * be. */
struct terminal_memory {
  gidx border;
  int ranks;       /* on this machine */
  gidx fit;        /* of each rank, while directions are found */
  gidx inputs;     /* of rank 0, from then on: directions, atoms, their hashes */
  gidx duplicates; /* in addition: near duplicates; and after these, all members below */
  gidx schur, lapack, workspace, results;
  gidx min;   /* the smallest workspace */
  gidx total; /* on this rank's machine */
  /* Of rank 0's GPU, which then holds S; 0: there is none.  `gpu` is the sum; or more, if the near
   * duplicates, which come before, need more. */
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
