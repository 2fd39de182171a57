/* SPDX-License-Identifier: BSD-3-Clause
 * Directions E (P x q) in which an atom's frame may move (N.16).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Candidates are, in this order, the d columns of G = sum_i r_i t_i', then M e for each kept
 * direction e, with M = sum_i r_i r_i', until q are kept or no candidate is left.  Sums over rows
 * are in the order of (N.0), with one fma per row and column.  Sums over columns are lane products
 * (base/sums.h). */
#ifndef MODEL_DIRECTIONS_H
#define MODEL_DIRECTIONS_H

#include "model/state.h"

enum { MAX_DIRECTIONS = 64 };

/* A candidate is dropped if orthogonalisation reduces its norm to this part or less. */
#define DIRECTION_TOLERANCE 0x1p-40

/* Orthogonalise candidate[p] by classical Gram-Schmidt, twice, against frame[d][p] and
 * kept[count][p].  Returns 1, with the candidate scaled to unit norm; or 0 if it is dropped. */
int direction_keep(const real *frame, idx d, const real *kept, idx count, idx p, real *candidate);

/* Reference: e[q][p] <- the directions of an atom, *kept <- their number.  ERR_MEMORY. */
int directions_reference(const struct atom_view *a, idx q, real *e, idx *kept);

#endif
