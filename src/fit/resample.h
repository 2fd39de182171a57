/* SPDX-License-Identifier: BSD-3-Clause
 * Atoms that no row uses start anew from the rows that are described worst.
 *
 * Floor: fit. */
#ifndef FIT_RESAMPLE_H
#define FIT_RESAMPLE_H

#include "refit/state.h"

/* Replace dead atoms, those with dead[k], by ascending index and at most `max` of them, by the rows
 * with the largest residual energy, of equals the lower row first, scaled to unit norm; rows
 * without residual are never taken.  energy[n]: of this rank's rows; NULL: of the state's
 * residuals, which must be those of the state.  *revived <- how many; dead[] keeps those.
 * Collective; the same status on every rank. */
int fit_resample(struct refit_state *f, const real *energy, idx max, unsigned char *dead,
                 gidx *revived);

#endif
