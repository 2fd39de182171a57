/* SPDX-License-Identifier: BSD-3-Clause
 * Replace useless atoms by the rows that are described worst.
 *
 * Floor: fit. */
#ifndef FIT_RESAMPLE_H
#define FIT_RESAMPLE_H

#include "refit/state.h"

/* Replace atoms with dead[k], by ascending index and at most `max` of them.  The new atoms are the
 * rows with the largest residual energy, scaled to unit norm; if energies are equal, the lower row
 * comes first.  Rows without residual are never taken.  energy[n]: the energies of this rank's
 * rows; NULL: they are computed from the residuals of the state.  *revived <- the number of atoms
 * replaced; dead[] <- 0 for all others.  Collective; the same status on every rank. */
int fit_resample(struct refit_state *f, const real *energy, idx max, unsigned char *dead,
                 gidx *revived);

#endif
