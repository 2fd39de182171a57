/* SPDX-License-Identifier: BSD-3-Clause
 * Routing of the rows that a rank holds over a dictionary that every rank holds (N.1 to N.3r).
 *
 * Floor: stage.  Not collective. */
#ifndef STAGE_REROUTE_H
#define STAGE_REROUTE_H

#include "stage/fit.h"

/* Replace the supports and scores of own rows; table is [k][d][p], the frames in f32. */
int fit_reroute(struct fit *f, const float *table, idx rounds);

#endif
