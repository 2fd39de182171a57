/* SPDX-License-Identifier: BSD-3-Clause
 * Dictionaries: K atoms, each a frame of d vectors of P floats, cut into tiles of equal width.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Tile j holds atoms j w .. min((j + 1) w, K) - 1 and belongs to worker j mod W.  A worker keeps
 * its tiles one after another, so each atom has an owner and a slot there. */
#ifndef MODEL_DICTIONARY_H
#define MODEL_DICTIONARY_H

#include "base/types.h"

enum { FRAME_MOST = 8 };

/* Atoms that can be read in pieces, as f32.  The io floor fills it for files. */
struct atom_source {
  idx k;            /* atoms */
  idx d, p;         /* vectors a frame, columns */
  const char *name; /* borrowed: for messages */
  void *self;       /* borrowed */
  /* out[count][d][p] <- atoms first .. first + count - 1.  Not collective. */
  int (*read)(void *self, idx first, idx count, float *out);
};

/* How a dictionary is dealt to workers. */
struct tiling {
  idx k, width, workers;
};
idx tiling_owner(const struct tiling *t, idx atom);
idx tiling_slot(const struct tiling *t, idx atom);             /* in the owner's array */
idx tiling_held(const struct tiling *t, idx worker);           /* atoms that a worker holds */
idx tiling_atom(const struct tiling *t, idx worker, idx slot); /* inverse of owner and slot */

/* Scale every vector of atoms[count][d][p] to unit norm: f64 chain of squares, square root,
 * quotient rounded once.  A zero or non-finite vector is left for atoms_check to name. */
void atoms_normalize(float *atoms, idx count, idx d, idx p);

/* ERR_INPUT names the first atom that is not finite, not of unit norm, or whose frame is not
 * orthonormal, each to UNIT_TOLERANCE; first is the global number of atom 0. */
#define UNIT_TOLERANCE 1e-4
int atoms_check(const float *atoms, idx count, idx d, idx p, idx first, const char *name);

/* Replace frame[d][p] (f64) by its orthonormal basis: modified Gram-Schmidt, twice, in order.
 * Returns the number of vectors before the first whose norm fell to 2^-20 of what it was; d is
 * all. */
idx frame_orthonormalize(real *frame, idx d, idx p);

#endif
