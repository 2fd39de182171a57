/* SPDX-License-Identifier: BSD-3-Clause
 * The files of a solve job: systems as they are read, results as they are written.
 *
 * Floor: solve; included by src/solve only. */
#ifndef SOLVE_FILES_H
#define SOLVE_FILES_H

#include "device/arrow.h"
#include "model/systems.h"

struct solve;

/* Two sets of buffers, the slots, alternate: while the batch in one of them is solved, workers
 * write the results that stand in the other and read the next batch into it. */
enum { SLOTS = 2 };

/* Results of a batch, on rank 0 (of all its systems). */
struct batch_results {
  real *step_t, *step_b;
  struct arrow_outcome *outcomes;
  gidx first, count; /* systems; count 0: nothing to write */
};

/* What the workers do in one go. */
struct files_job {
  struct solve *s;
  struct batch_results *write[SLOTS]; /* or NULL */
  struct systems_block *read;         /* or NULL */
};

/* System a of a block. */
struct arrow_system system_view(const struct systems_shape *s, const struct systems_block *b,
                                gidx a);

/* Let the workers write the results in a slot and read this rank's part of the batch at `first`,
 * where there is one, into the slot; or write the results in both slots, that one first.  Then wait
 * for them, which is collective, and *asked <- the bits that some rank has. */
int solve_files_start(struct solve *s, gidx first, int slot);
int solve_files_finish(struct solve *s, int slot);
int solve_files_wait(struct solve *s, uint64_t *asked);

#endif
