/* SPDX-License-Identifier: BSD-3-Clause
 * Sweeps of steps where the rows stay on a GPU: what refit_sweep() does, with its bits, by one
 * operation of the device.
 *
 * Floor: refit.  One rank, whose coder has the rows, or all ranks of sparse_coder_join(), each of
 * which has all rows: atoms of large classes are then shared out, and all get what became of
 * them. */
#ifndef REFIT_RESIDENT_H
#define REFIT_RESIDENT_H

#include "device/steps.h"
#include "refit/sparse_coder.h"
#include "refit/coloring.h"
#include "refit/refit.h"

struct resident {
  int is_on; /* 0: sweeps are refit_sweep()'s */
  struct refit_state *f;
  struct sparse_coder *coder;
  const struct coded *rows;
  float *table; /* borrowed: [k][d][p], what the coder is given as dictionary */
  idx q;
  struct buffer work;
  struct buffer messages; /* of ranks that share classes, to all */
  struct steps_peers share;
  idx *counts;    /* [ranks] of messages */
  gidx exchanged; /* the exchange before, -1: none in this sweep */
  gidx shared;    /* exchanges so far */
  struct color_looker looker;
  int has_entry;               /* the device has the entries of the next sweep */
  struct step_result *results; /* [k] */
  struct arena arena;
};

/* Prepare for sweeps in q directions, of a state whose rows, supports and codes `rows` has on the
 * coder's device; `table` is the caller's, for its dictionary.  It is off where there are several
 * ranks, on the CPU, for shapes that the device leaves to others, and where its memory is too
 * small, which the log says.  ERR_MEMORY of the host.  Not collective; resident_close() is safe on
 * a zeroed struct, and comes before the coder is closed. */
int resident_open(struct resident *r, struct refit_state *f, struct sparse_coder *coder,
                  const struct coded *rows, float *table, idx q);
void resident_close(struct resident *r);

/* Has this rank a GPU that takes the steps of a state of these sizes, and holds its rows, those of
 * the coder and `held` more?  It asks for the GPU.  Not collective. */
int resident_fits(const struct refit_state *f, const struct sparse_coder_shape *shape, gidx held,
                  idx q);

/* *alone of c (comm_alone()) has been planned for: every rank with all rows, of which it codes its
 * share and takes its share of steps, where ranks that share out rows take them on CPUs.  If any
 * rank cannot, *alone is ended and becomes c; failures of plans are forgotten.  Collective. */
int resident_agree(struct comm *c, int can, struct comm **alone);

/* refit_state_index() where steps are taken on the device, after the coder's supports changed: the
 * list of entries stays there, and the state's own is stale, but for more entries than the device
 * lists.  Residuals of the sweep before are lost.  Collective, as is its failure, of all ranks that
 * share the coder. */
int resident_index(struct resident *r);

/* Who looks at the rows when atoms are coloured: the device, or NULL, the host. */
const struct color_looker *resident_looker(const struct resident *r);

/* refit_sweep(), but that the state's codes and residuals stay as they were.  Collective where
 * ranks share the coder: a failure of one is then not agreed, and ends the job. */
int resident_sweep(struct resident *r, const struct classes *classes, struct atom_step *steps,
                   struct sweep_counts *counts);

/* The residuals of the state become those after the sweep. */
int resident_residuals(struct resident *r);

#endif
