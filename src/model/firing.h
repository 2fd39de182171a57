/* SPDX-License-Identifier: BSD-3-Clause
 * Above which code an atom fires (N.37f): small codes only help to describe a row, large ones say
 * that the atom's feature is there.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_FIRING_H
#define MODEL_FIRING_H

#include "base/types.h"

/* The threshold of an atom from its n codes, which are all above 0 and get sorted.  0 if no split
 * into large and small ones is best: then any code above 0 fires. */
float firing_threshold(float *codes, gidx n);

#endif
