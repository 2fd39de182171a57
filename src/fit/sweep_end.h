/* SPDX-License-Identifier: BSD-3-Clause
 * The end of a sweep of a fit: rows are coded again, and judged.
 *
 * Floor: fit; included by src/fit only. */
#ifndef FIT_SWEEP_END_H
#define FIT_SWEEP_END_H

#include "fit/fit.h"

struct fit;

/* Judge the state, whose atoms are rounded, and hand it to the sink.  Collective. */
int fit_sweep_close(struct fit *f);
/* The state that an earlier run left: do the rows give what it said?  ERR_INPUT.  Collective. */
int fit_sweep_reopen(struct fit *f);

#endif
