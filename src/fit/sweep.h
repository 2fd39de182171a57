/* SPDX-License-Identifier: BSD-3-Clause
 * A sweep of a fit: how its atoms move, and whether another one follows.
 *
 * Floor: fit; included by src/fit only. */
#ifndef FIT_SWEEP_H
#define FIT_SWEEP_H

#include "fit/fit.h"

struct fit;

/* One sweep, until atoms are rounded; fit_sweep_close() follows, unless it is stopped.
 * Collective. */
int fit_sweep_run(struct fit *f);
/* Are atoms replaced that are almost like others? */
int fit_replaces_duplicates(const struct fit *f);
/* An earlier run's sweeps: would the fit have ended before the last of them?  ERR_INPUT.  Not
 * collective; the same on every rank. */
int fit_start_check(const struct fit *f);
/* What the last FIT_PATIENCE passes over the rows gained of explained variance; NaN: they were
 * fewer, or this is no end of one. */
real fit_gain(const struct fit *f, gidx sweep);
/* Does the fit go on?  If not, *end says why.  Not collective; the same on every rank. */
int fit_goes_on(const struct fit *f, enum fit_end *end);

#endif
