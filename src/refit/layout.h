/* SPDX-License-Identifier: BSD-3-Clause
 * The memory of a refit, from the shapes of its files only, before anything is read.
 *
 * Floor: refit.  Not collective.
 *
 * The allocating functions are run with dry arenas, so the forecast cannot differ from what is
 * taken later.  Sizes that depend on the supports, such as the rows of a batch and the kept
 * directions, are taken as upper bounds.  The scratch of device operations, which is allocated for
 * each call, is left out. */
#ifndef REFIT_LAYOUT_H
#define REFIT_LAYOUT_H

#include "refit/atom_batch.h"
#include "refit/state.h"

/* Bytes of the rank with the most memory, rank 0. */
struct refit_memory {
  struct refit_resident_bytes
      held;       /* all the time; load, classes, batch and sweep_end come one after another, in
                   * addition */
  gidx part;      /* this rank's part of held.shared */
  gidx load;      /* reading, or sums over all rows, whichever takes more */
  gidx classes;   /* colouring; 0 if no classes are to be found */
  gidx batch;     /* a batch of about as many atoms as the largest class, if they had all rows */
  gidx most;      /* a batch of atom_batch_max() atoms, if they had all rows */
  gidx sweep_end; /* the end of a sweep, or writing the state after it, whichever takes more */
  gidx total;     /* held, part, the program itself, and the largest of load, classes, batch and
                   * sweep_end */
};

/* *m <- the memory of a job whose batches have atoms that share no row, with q directions;
 * bytes_of() gives the memory of the job for a batch.  ERR_INPUT, ERR_MEMORY as
 * refit_state_shape(). */
int refit_memory(const struct refit_task *task, const struct comm *c, batch_bytes_of *bytes_of,
                 idx q, struct refit_memory *m);

/* Check the memory of a state that has its sizes: the state, and what reading it takes or, if the
 * task colours and this takes more, what colouring takes.  ERR_MEMORY, with the numbers, if the sum
 * is more than this rank's share of the free memory of its machine. */
int refit_memory_check(const struct refit_state *f);

/* Check the memory of the whole job: besides that of refit_memory_check() a batch of atoms, and the
 * end of a sweep if there is one.  Collective; meant to be called before refit_state_load(), which
 * calls refit_memory_check() alone. */
int refit_total_check(const struct refit_task *task, struct comm *c, batch_bytes_of *bytes_of,
                      idx q, int has_sweep_end);

/* Atoms per row, for supports with the same number in each row. */
idx refit_task_support(const struct refit_task *task);

#endif
