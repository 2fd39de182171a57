/* SPDX-License-Identifier: BSD-3-Clause
 * The code above which an atom fires (N.37f).  Small codes only help to describe a row; a large
 * code means that the row has the atom's feature.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_FIRING_H
#define MODEL_FIRING_H

#include "base/types.h"

/* The threshold of an atom from its n codes, which are all above 0; they are sorted in place.  0 if
 * it is best to count all codes as large: then any code above 0 fires. */
float firing_threshold(float *codes, gidx n);

#endif
