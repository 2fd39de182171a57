/* SPDX-License-Identifier: BSD-3-Clause
 * Directions E (P x q) in which an atom's frame may move (N.16).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Candidates in order: the d columns of G = sum_i r_i t_i', then M e for each direction e kept, M =
 * sum_i r_i r_i', until q are kept or no candidate is left.  Sums over rows by (N.0), each row one
 * fma a column. */
#ifndef MODEL_DIRECTIONS_H
#define MODEL_DIRECTIONS_H

#include "model/state.h"

enum { DIRECTIONS_MOST = 64 };

/* A direction whose norm falls to this part by orthogonalisation is dropped. */
#define DIRECTION_TOLERANCE 0x1p-40

/* Orthogonalise candidate[p] by modified Gram-Schmidt, twice, against frame[d][p], then kept[count]
 * [p], in order; scale it to unit norm and return 1, or return 0: it is dropped. */
int direction_keep(const real *frame, idx d, const real *kept, idx count, idx p, real *candidate);

/* Reference: e[q][p] <- the directions of an atom, *kept how many.  ERR_MEMORY. */
int directions_reference(const struct atom_view *a, idx q, real *e, idx *kept);

#endif
