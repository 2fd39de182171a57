/* SPDX-License-Identifier: BSD-3-Clause
 * The end of a sweep: the state becomes what files hold, and is judged.
 *
 * Floor: refit. */
#ifndef REFIT_SWEEP_END_H
#define REFIT_SWEEP_END_H

#include "base/stop.h"
#include "model/results.h"
#include "refit/sparse_coder.h"
#include "refit/resident.h"
#include "refit/state.h"

struct sweep_end_options {
  struct sparse_coder *coder; /* computes; NULL: the state's own device, which cannot route */
  struct coded *rows; /* of the state, on the coder's device; NULL: they go there for this call */
  struct resident *resident; /* has the rows, and lists them by atom; NULL: the host does */
  int reroute;               /* route all rows again, first; else supports stay as they are */
  float *table;       /* [k][d][p] written: the frames as stored; a coder holds them from then on.
                       * Where frames are shared it is the state's */
  idx max_cosine;     /* largest K for which the decoder cosine is computed */
  struct stops stops; /* asked while rows are routed and coded; none asked: nothing ever does */
};

/* Round the frames to f32, route again if wanted, solve the codes of every row again (N.5) and
 * round them.  Residuals and classes are stale afterwards where supports changed; the index of rows
 * is made anew.  f->contents names what files will have.  metrics: on rank 0, those of the new
 * state; density[k] is lent to it.  *stopped <- was the job asked to stop before rows were coded?
 * Then the state is none.  Collective. */
int refit_sweep_end(struct refit_state *f, const struct sweep_end_options *options, gidx *density,
                    real tss, struct metrics *metrics, int *stopped);

/* *cosine <- the largest of two atoms of a table that every rank has.  Collective. */
struct table_cosine {
  const float *table; /* [k][d][p] */
  idx k, d, p, threads;
  const char *variant, *name;
};
int refit_table_cosine(struct comm *c, const struct table_cosine *t, real *cosine);

/* The shape of a coder for the rows of a state, one of so many rounds. */
struct sparse_coder_shape refit_sparse_coder_shape(const struct refit_state *f, idx rounds,
                                                   const char *device);

/* Seconds that it takes on this rank, very roughly, with options->coder and options->reroute. */
double refit_sweep_end_seconds(const struct refit_state *f, const struct sparse_coder *coder,
                               int reroute);

/* *bytes <- the most that this takes while it runs: its allocations, run dry, and two more copies
 * of the dictionary, which is what the decoder cosine makes of it.  Of a task with a table it
 * counts what the task says there is; else also a coder of all atoms, the cosine, and the table.
 * Not collective. */
int refit_sweep_end_bytes(const struct refit_state *f, gidx *bytes);

#endif
