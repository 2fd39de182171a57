/* SPDX-License-Identifier: BSD-3-Clause
 * The files of a solve job: reading systems and writing results.
 *
 * Floor: solve; included by src/solve only. */
#ifndef SOLVE_FILES_H
#define SOLVE_FILES_H

#include "device/arrow.h"
#include "model/systems.h"

struct solve;

/* Two sets of buffers, the slots, alternate.  While the batch in one slot is solved, workers write
 * the results in the other, and read the next batch into it. */
enum { SLOTS = 2 };

/* The results of a batch, on rank 0, of all its systems. */
struct batch_results {
  real *step_t, *step_b;
  struct arrow_outcome *outcomes;
  gidx first, count; /* first: a system; count: of systems, 0: nothing to write */
};

/* The next job of the two workers. */
struct files_job {
  struct solve *s;
  struct batch_results *write[SLOTS]; /* or NULL */
  struct systems_block *read;         /* or NULL */
};

/* System a, in the block that it was read into. */
struct arrow_system system_view(const struct systems_shape *s, const struct systems_block *b,
                                gidx a);

/* solve_files_start(): let the workers write the results in a slot, and read this rank's part of
 * the batch at `first`, if there is one, into it.  solve_files_finish(): let them write the results
 * in both slots, this one first.  solve_files_wait(): wait for them; *asked <- the bits that any
 * rank has.  Collective. */
int solve_files_start(struct solve *s, gidx first, int slot);
int solve_files_finish(struct solve *s, int slot);
int solve_files_wait(struct solve *s, uint64_t *asked);

#endif
