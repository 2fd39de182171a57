/* SPDX-License-Identifier: BSD-3-Clause
 * What the terminal pass takes of memory: known before any work.
 *
 * Floor: terminal.  Not collective. */
#ifndef TERMINAL_LAYOUT_H
#define TERMINAL_LAYOUT_H

#include "terminal/terminal.h"

/* Upper bounds in bytes: what the pass allocates, run dry for as many directions as there may
 * be. */
struct terminal_memory {
  gidx border;
  int ranks;       /* on this machine */
  gidx fit;        /* each rank's, while directions are found */
  gidx inputs;     /* rank 0's, from then on: directions, atoms, their hashes */
  gidx duplicates; /* beside them: near duplicates, and after those all of */
  gidx schur, lapack, workspace, results;
  gidx min;   /* the least workspace */
  gidx total; /* on this rank's machine */
  /* Of rank 0's GPU, which then holds S; 0: there is none.  `gpu` is all of it, or more for the
   * near duplicates, which come before. */
  gidx gpu_schur, gpu_factor, gpu_rows, gpu;
};

/* For the device of rank 0, which may be dry, and is not looked at on other ranks.  ERR_INPUT when
 * the inputs do not fit together. */
int terminal_memory(const struct terminal_task *t, struct comm *c, const struct device *dev,
                    struct terminal_memory *m);

/* ERR_MEMORY with the numbers when the total is more than task->present, ERR_USAGE when the
 * workspace is too little. */
int terminal_fits(const struct terminal_task *t, struct comm *c, const struct device *dev);

#endif
