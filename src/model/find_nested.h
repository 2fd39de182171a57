/* SPDX-License-Identifier: BSD-3-Clause
 * Finding features: active atoms that are chosen block after block, by what the blocks before leave
 * of a row (N.59).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_FIND_NESTED_H
#define MODEL_FIND_NESTED_H

#include "model/find.h"
#include "model/find_update.h"

/* Rows of the sample by which thresholds are found, at most, and how often each is halved. */
enum { NESTED_SAMPLE = 1024, NESTED_HALVINGS = 9 };

/* A threshold's upper end, and the middle of two; square: the rows' mean square. */
float nested_top(int relative, real square);
static inline float nested_middle(float low, float high)
{
  return 0.5f * (low + high);
}

/* Codes of the rows, codes[n][k], chosen 1 + looks times by thresholds[1 + looks], and what they
 * leave, left[n][p].  ERR_MEMORY. */
int find_nested_reference(const struct find_rows *r, const struct find_blocks *blocks, int looks,
                          const float *threshold, float *codes, float *left);

/* threshold[1 + looks] <- the least that were tried by which all rows together choose floor(l0 n)
 * atoms at most, one after the other.  ERR_MEMORY. */
int find_thresholds_reference(const struct find_rows *r, const struct find_blocks *blocks, real l0,
                              int looks, float top, float *threshold);

#endif
