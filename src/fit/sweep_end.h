/* SPDX-License-Identifier: BSD-3-Clause
 * The end of a sweep of a fit: code the rows again, and evaluate the atoms.
 *
 * Floor: fit; included by src/fit only. */
#ifndef FIT_SWEEP_END_H
#define FIT_SWEEP_END_H

#include "fit/fit.h"

struct fit;

/* Evaluate the state, whose atoms are rounded, and send it to the sink.  Collective. */
int fit_sweep_close(struct fit *f);
/* Check that the state of an earlier run gives the figures that the earlier run recorded.
 * ERR_INPUT.  Collective. */
int fit_sweep_reopen(struct fit *f);

#endif
