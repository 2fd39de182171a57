/* SPDX-License-Identifier: BSD-3-Clause
 * What a refit takes: known from the shapes of its files alone, before anything is read.
 *
 * Floor: refit.  Not collective.
 *
 * Nothing here knows an array: the functions that allocate are run with dry arenas, so that the
 * forecast cannot differ from what is then taken.  Where sizes are known only from the supports,
 * the rows of a batch and the directions that are kept, it takes the upper bound.  Left out is the
 * scratch of device operations, which take arenas of their own for each call. */
#ifndef REFIT_LAYOUT_H
#define REFIT_LAYOUT_H

#include "refit/atom_batch.h"
#include "refit/state.h"

enum { PROGRAM_BYTES = 64 << 20 }; /* an empty rank, with MPI and HDF5 */

/* Bytes of the most loaded rank, which is rank 0. */
struct refit_memory {
  struct refit_resident_bytes
      held;       /* all the time; the next four come one after another, beside it */
  gidx part;      /* of held.shared that counts for each rank of the node */
  gidx load;      /* the larger one of reading and of sums over all rows */
  gidx classes;   /* colouring; 0 where no classes are found */
  gidx batch;     /* a batch of atoms, as if its atoms had all rows */
  gidx sweep_end; /* the end of a sweep, or writing the state after it */
  gidx total;     /* what is held, the largest of these four, and the program itself */
};

/* For batches of atoms that share no row, with q directions; bytes_of() tells what the job does
 * with them.  ERR_INPUT, ERR_MEMORY as refit_state_shape(). */
int refit_memory(const struct refit_task *task, const struct comm *c, batch_bytes_of *bytes_of,
                 idx q, struct refit_memory *m);

/* ERR_MEMORY, with the numbers, when a state that has its sizes, with reading it or with colouring,
 * if the task colours, is more than this rank's share of what the machine has left. */
int refit_memory_check(const struct refit_state *f);

/* The same for the whole job: also a batch of atoms, and the end of a sweep if there is one.
 * Collective; meant to be called before refit_state_load(), which makes the former check alone. */
int refit_total_check(const struct refit_task *task, struct comm *c, batch_bytes_of *bytes_of,
                      idx q, int has_sweep_end);

/* Atoms a row of supports that have as many in each row. */
idx refit_task_support(const struct refit_task *task);

#endif
