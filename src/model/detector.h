/* SPDX-License-Identifier: BSD-3-Clause
 * Detectors: for each atom a linear score of a row and a threshold, which say whether it fires
 * (N.36, N.37).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_DETECTOR_H
#define MODEL_DETECTOR_H

#include "base/memory.h"
#include "base/types.h"

/* Eigenvalues of a covariance count as this part of the largest at least. */
#define DETECTOR_FLOOR 1e-4
enum { DETECTOR_TILE = 16 }; /* atoms whose scores are found together */

/* chain[i][p] of columns first .. first + count - 1 += x_b x_c of rows x[n][p], in their order. */
void covariance_add(const float *x, gidx n, idx p, idx first, idx count, real *chain);

/* root[p][p] <- the inverse square root of a covariance[p][p], which is used up.  ERR_INPUT: all
 * rows are the same, or a value is not finite.  On so many threads. */
int whitening_find(idx p, real *covariance, int threads, struct arena *arena, real *root);

/* out[p] <- the detector of an atom. */
void detector_make(const real *root, idx p, const float *atom, float *out);

/* scores[n][DETECTOR_TILE] <- of rows x[n][p] by detectors e_j, tile[p][DETECTOR_TILE]: the chain
 * of (N.24) each. */
void detector_scores(const float *x, gidx n, idx p, const float *tile, float *scores);

/* A threshold for an atom: `fires` are its scores in the n rows in which its code fires, the
 * largest first; begins[i] counts the rows whose score is at least fires[i] and not
 * fires[i - 1]. */
struct detector_threshold {
  float least;     /* a row fires above it; FLT_MAX: never */
  gidx hits, said; /* rows above it whose code fires, rows above it */
};
struct detector_threshold detector_threshold_find(const float *fires, gidx n, const gidx *begins);

/* Where a score counts in begins[n]: the first of fires[n] that is not above it; n: none. */
gidx detector_position(const float *fires, gidx n, float score);

#endif
