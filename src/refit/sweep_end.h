/* SPDX-License-Identifier: BSD-3-Clause
 * The end of a sweep: the state becomes what files hold, and is judged.
 *
 * Floor: refit. */
#ifndef REFIT_SWEEP_END_H
#define REFIT_SWEEP_END_H

#include "model/results.h"
#include "refit/state.h"

struct sweep_end_options {
  int reroute;    /* route all rows again, first */
  idx rounds;     /* of routing */
  idx max_cosine; /* largest K for which the decoder cosine is computed */
};

/* Round the frames to f32, route again if wanted, solve the codes of every row again (N.5) and
 * round them.  Residuals and classes are stale afterwards where supports changed; the index of rows
 * is made anew.  f->contents names what files will have.  metrics: on rank 0, those of the new
 * state; density[k] is lent to it.  Collective. */
int refit_sweep_end(struct refit_state *f, const struct sweep_end_options *options, gidx *density,
                    real tss, struct metrics *metrics);

/* *bytes <- the most that this takes while it runs, with rerouting: its allocations, run dry, and
 * two more copies of the dictionary, which is what a CPU device and the decoder cosine make of it.
 * Not collective. */
int refit_sweep_end_bytes(const struct refit_state *f, gidx *bytes);

#endif
