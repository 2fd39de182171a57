/* SPDX-License-Identifier: BSD-3-Clause
 * The end of a sweep: the state is rounded to what files hold, and evaluated.
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
  struct sparse_coder *coder; /* codes rows, and routes them; NULL: the state's own device codes
                               * them, and cannot route */
  struct coded *rows; /* the state's rows on the coder's device; NULL: they are copied for this
                       * call */
  struct resident *resident; /* lists the rows of each atom on the GPU; NULL: the host does */
  int reroute;               /* first route all rows again; 0: supports stay as they are */
  float *table;       /* [k][d][p] written: the frames as stored; a coder uses it from then on.  If
                       * frames are shared, it is the table of the state */
  idx max_cosine;     /* largest K for which the decoder cosine is computed */
  struct stops stops; /* asked while rows are routed and coded; asked NULL: never stopped */
};

/* Round the frames to f32, route again if wanted, solve the codes of every row again (N.5), and
 * round them.  If supports changed, residuals and classes are stale afterwards; the index of rows
 * is made again.  f->contents <- the hashes of the data that files will have.  *metrics, on rank 0
 * <- the metrics of the new state, which borrow density[k].  *stopped <- the job was asked to stop
 * before all rows were coded; then the state is not valid.  Collective. */
int refit_sweep_end(struct refit_state *f, const struct sweep_end_options *options, gidx *density,
                    real tss, struct metrics *metrics, int *stopped);

/* *cosine <- the largest cosine of two atoms of a table that every rank has.  Collective. */
struct table_cosine {
  const float *table; /* [k][d][p] */
  idx k, d, p, threads;
  const char *variant, *name;
};
int refit_table_cosine(struct comm *c, const struct table_cosine *t, real *cosine);

/* The shape of a coder with `rounds` rounds for the rows of a state. */
struct sparse_coder_shape refit_sparse_coder_shape(const struct refit_state *f, idx rounds,
                                                   const char *device);

/* Seconds that refit_sweep_end() takes on this rank, very roughly, with this coder and reroute. */
double refit_sweep_end_seconds(const struct refit_state *f, const struct sparse_coder *coder,
                               int reroute);

/* *bytes <- the peak memory of refit_sweep_end(), from a dry run of its allocations.  For a task
 * with a table: a coder, which has all atoms only if the task routes; and two copies of the
 * dictionary for the decoder cosine, if K is at most max_cosine.  For other tasks: a coder of all
 * atoms, and three copies of the dictionary, one of which is the table.  Not collective. */
int refit_sweep_end_bytes(const struct refit_state *f, gidx *bytes);

#endif
