/* SPDX-License-Identifier: BSD-3-Clause
 * Routing of the rows that a rank holds over a dictionary that every rank holds (N.1 to N.3r).
 *
 * Floor: refit.  Not collective. */
#ifndef REFIT_REROUTE_H
#define REFIT_REROUTE_H

#include "refit/state.h"

/* Replace the supports and scores of own rows by those that so many rounds of routing find over
 * table[k][d][p], the frames in f32. */
int refit_reroute(struct refit_state *f, float *table, idx rounds);

/* *bytes <- what that takes beside the device, but for the state of a block's codes: its
 * allocations, run dry. */
int refit_reroute_bytes(const struct refit_state *f, gidx *bytes);

#endif
