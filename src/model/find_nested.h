/* SPDX-License-Identifier: BSD-3-Clause
 * Finding features: active atoms are chosen block after block, in each block by the residual that
 * the blocks before it leave of a row (N.59).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_FIND_NESTED_H
#define MODEL_FIND_NESTED_H

#include "model/find.h"
#include "model/find_update.h"

/* Largest number of rows of the sample from which thresholds are found; halvings of the interval of
 * each threshold. */
enum { NESTED_SAMPLE = 1024, NESTED_HALVINGS = 9 };

/* nested_top() returns the upper end of the first interval of a threshold.  square: mean squared
 * norm of the rows.  nested_middle() returns the middle of an interval. */
float nested_top(int relative, real square);
static inline float nested_middle(float low, float high)
{
  return 0.5f * (low + high);
}

/* codes[n][k] <- the codes of the rows, chosen 1 + looks times by thresholds[1 + looks]; left[n][p]
 * <- the residuals of the rows.  ERR_MEMORY. */
int find_nested_reference(const struct find_rows *r, const struct find_blocks *blocks, int looks,
                          const float *threshold, float *codes, float *left);

/* threshold[1 + looks] <- for each choice the lowest of the tried thresholds with which all rows
 * together have at most floor(l0 n) active atoms; `top` if none has so few.  ERR_MEMORY. */
int find_thresholds_reference(const struct find_rows *r, const struct find_blocks *blocks, real l0,
                              int looks, float top, float *threshold);

#endif
