/* SPDX-License-Identifier: BSD-3-Clause
 * A sweep of a fit: how its atoms move, and whether the fit goes on.
 *
 * Floor: fit; included by src/fit only. */
#ifndef FIT_SWEEP_H
#define FIT_SWEEP_H

#include "fit/fit.h"

struct fit;

/* Run one sweep up to the rounding of the atoms.  fit_sweep_close() then ends the sweep, unless
 * f->stopped.  Collective. */
int fit_sweep_run(struct fit *f);
/* Does a sweep replace atoms that are almost equal to others? */
int fit_replaces_duplicates(const struct fit *f);
/* Check the sweeps of an earlier run.  ERR_INPUT: with this tolerance the fit would have ended
 * before the last of them.  Not collective; the same on every rank. */
int fit_start_check(const struct fit *f);
/* The gain in explained variance of the last FIT_PATIENCE passes over the rows, up to this sweep.
 * NaN: there were fewer passes, no pass ends with this sweep, or no sweep has a value yet. */
real fit_gain(const struct fit *f, gidx sweep);
/* Does the fit go on after f->sweep?  If not, *end says why.  Not collective; the same on every
 * rank. */
int fit_goes_on(const struct fit *f, enum fit_end *end);

#endif
