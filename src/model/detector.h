/* SPDX-License-Identifier: BSD-3-Clause
 * Detectors: a linear score of a row for each atom, and a threshold above which the atom fires
 * (N.36, N.37).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_DETECTOR_H
#define MODEL_DETECTOR_H

#include "base/memory.h"
#include "base/types.h"

/* Eigenvalues of a covariance count as at least this part of the largest one. */
#define DETECTOR_FLOOR 1e-4
enum { DETECTOR_TILE = 16 }; /* atoms whose scores are computed together */

/* For columns b = first .. first + count - 1 and all columns c: chain[b - first][c] += x_b x_c,
 * added over the rows x[n][p] in order. */
void covariance_add(const float *x, gidx n, idx p, idx first, idx count, real *chain);

/* root[p][p] <- the inverse square root of covariance[p][p], which is overwritten.  ERR_INPUT: all
 * rows are equal, or a value is not finite. */
int whitening_find(idx p, real *covariance, int threads, struct arena *arena, real *root);

/* out[p] <- the detector of an atom. */
void detector_make(const real *root, idx p, const float *atom, float *out);

/* scores[n][DETECTOR_TILE] <- the scores of rows x[n][p] by the detectors e_j in
 * tile[p][DETECTOR_TILE], each a chain as in (N.24). */
void detector_scores(const float *x, gidx n, idx p, const float *tile, float *scores);

/* The threshold of an atom.  fires[n]: the scores of the n rows in which the code of the atom
 * fires, falling.  begins[i]: the number of rows whose score is at least fires[i] and less than
 * fires[i - 1]. */
struct detector_threshold {
  float least;     /* a row fires if its score is above; FLT_MAX: none does */
  gidx hits, said; /* numbers of rows above `least`: those whose code fires, and all */
};
struct detector_threshold detector_threshold_find(const float *fires, gidx n, const gidx *begins);

/* The index in begins[n] at which a score is counted: the first i with fires[i] <= score; n if
 * there is none. */
gidx detector_position(const float *fires, gidx n, float score);

#endif
