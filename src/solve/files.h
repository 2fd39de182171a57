/* SPDX-License-Identifier: BSD-3-Clause
 * The files of a solve job: reading systems and writing results.
 *
 * Floor: solve; included by src/solve only. */
#ifndef SOLVE_FILES_H
#define SOLVE_FILES_H

#include "device/arrow.h"
#include "model/systems.h"

struct solve;

/* Two sets of buffers, the slots, alternate.  While the batch in one slot is solved, workers give
 * the results of the other slot to the sink, and read the next batch into that slot. */
enum { SLOTS = 2 };

/* The results of all systems of a batch, on rank 0. */
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

/* System a of a block; the pointers are into the block. */
struct arrow_system system_view(const struct systems_shape *s, const struct systems_block *b,
                                gidx a);

/* solve_files_start(): let the workers write the results of a slot, and read into this slot this
 * rank's part of the batch that begins with system `first`, if there is one.  solve_files_finish():
 * let them write the results of both slots, `slot` first.  solve_files_wait(): wait for them;
 * *asked: bits of this rank; on return the bits of all ranks, joined by `or`.  Only
 * solve_files_wait() is collective. */
int solve_files_start(struct solve *s, gidx first, int slot);
int solve_files_finish(struct solve *s, int slot);
int solve_files_wait(struct solve *s, uint64_t *asked);

#endif
