/* SPDX-License-Identifier: BSD-3-Clause
 * Sweeps with rows that stay on a GPU.  A sweep is one operation of the device, with the bits of
 * refit_sweep().
 *
 * Floor: refit.  One rank, whose coder has the rows; or all ranks of sparse_coder_join(), each of
 * which has all rows.  Then the atoms of large classes are divided among the ranks, and all get the
 * results. */
#ifndef REFIT_RESIDENT_H
#define REFIT_RESIDENT_H

#include "device/steps.h"
#include "refit/sparse_coder.h"
#include "refit/coloring.h"
#include "refit/refit.h"

struct resident {
  int is_on; /* 0: refit_sweep() makes the sweeps */
  struct refit_state *f;
  struct sparse_coder *coder;
  const struct coded *rows;
  float *table; /* borrowed: [k][d][p], the coder's dictionary */
  idx q;
  struct buffer work;
  struct buffer messages; /* what ranks that divide classes send to all ranks */
  struct steps_peers share;
  idx *counts;    /* [ranks] reals of each rank's message */
  gidx exchanged; /* the last exchange (comm/buffers.h); -1: none in this sweep */
  gidx shared;    /* number of exchanges so far */
  struct color_looker looker;
  int has_entry;               /* the device has the index of entries for the next sweep */
  struct step_result *results; /* [k] */
  struct arena arena;
};

/* Prepare for sweeps of f in q directions.  The state's rows, supports and codes are in `rows` on
 * the coder's device.  `table` is the caller's array for the coder's dictionary.  is_on stays 0 in
 * four cases: several ranks divide the rows; the device is a CPU; the device does not take such
 * shapes; its memory is too small for `work`, which the log says.  ERR_MEMORY of the host, or of
 * the GPU for `messages`.  Not collective; resident_close() is safe on a zeroed struct, and must
 * come before the coder is closed. */
int resident_open(struct resident *r, struct refit_state *f, struct sparse_coder *coder,
                  const struct coded *rows, float *table, idx q);
void resident_close(struct resident *r);

/* Does this rank have a GPU that takes the steps of a state of these sizes?  The GPU must also hold
 * the rows of the state, a coder of this shape, and `held` more rows.  0 if there is no such GPU.
 * Not collective. */
int resident_fits(const struct refit_state *f, const struct sparse_coder_shape *shape, gidx held,
                  idx q);

/* Agree whether *alone, which comm_alone(c) made, is used.  If so, every rank has all rows, and
 * takes its share of codes and steps on its GPU.  If any rank cannot, *alone is ended and becomes
 * c, failures of the attempt are dropped, and ranks divide the rows and take steps on CPUs.
 * Collective. */
int resident_agree(struct comm *c, int can, struct comm **alone);

/* refit_state_index() when steps are taken on the device, after the coder's supports changed.  The
 * list of entries stays on the device, and the state's own index is stale.  If there are more
 * entries than the device can list, the host makes the state's own index.  Residuals of the last
 * sweep are lost.  Collective. */
int resident_index(struct resident *r);

/* The looker for colouring, which uses the device; NULL: the host finds the conflicts. */
const struct color_looker *resident_looker(const struct resident *r);

/* As refit_sweep(), but the state's codes and residuals are not changed.  Collective if ranks share
 * the coder: then a failure of one rank is not agreed, and ends the job. */
int resident_sweep(struct resident *r, const struct classes *classes, struct atom_step *steps,
                   struct sweep_counts *counts);

/* Set the state's residuals to those after the sweep. */
int resident_residuals(struct resident *r);

#endif
