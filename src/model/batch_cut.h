/* SPDX-License-Identifier: BSD-3-Clause
 * Which scores of a batch are codes (N.46): the largest positive ones over all rows and atoms, in
 * the order of value, then row, then atom.  Also the threshold that a training derives from them.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * The key of a positive score is the bits of its float, which ascend as the floats do.  The key of
 * the last code is found by counting, digit by digit: counts are integers, so their sums do not
 * depend on how rows are divided. */
#ifndef MODEL_BATCH_CUT_H
#define MODEL_BATCH_CUT_H

#include <string.h>

#include "base/types.h"

enum { BATCH_DIGITS = 3, BATCH_BINS = 1 << 11 };

/* A score is a code if its key is greater than `key`.  Of the scores whose key equals `key`, the
 * first `left` by row and atom are codes.  Key 0 means that every positive score is a code. */
struct batch_cut {
  int32_t key;
  int digits; /* digits of the key that are known */
  gidx left;
};

/* The number of codes of a batch of n rows: floor(l0 n). */
gidx batch_most(real l0, idx n);

/* The cut before any digit is known.  With most = 0 the cut is complete, and no score is a code. */
struct batch_cut batch_cut_begin(gidx most);
/* Find the next digit, from counts of the scores of all rows by this digit. */
void batch_cut_narrow(struct batch_cut *cut, const gidx *counts);

/* The bits of a positive score; otherwise 0. */
static inline int32_t batch_key(float score)
{
  int32_t key;
  memcpy(&key, &score, sizeof key);
  return score > 0 ? key : 0;
}

/* The next digit of a key is its bits shift .. known - 1. */
static inline void batch_bits(const struct batch_cut *cut, int *shift, int *known)
{
  static const int shifts[BATCH_DIGITS + 1] = {20, 10, 0, 0};
  *shift = shifts[cut->digits];
  *known = cut->digits ? *shift + 10 : 31;
}

/* The next digit of a key; -1 if the key is 0, or if its earlier digits differ from the digits of
 * the cut. */
static inline int batch_digit(const struct batch_cut *cut, int32_t key)
{
  int shift, known;
  batch_bits(cut, &shift, &known);
  if (key == 0 || (uint32_t)key >> known != (uint32_t)cut->key >> known) return -1;
  return (key >> shift) & ((1 << (known - shift)) - 1);
}

/* The score of the last code. */
float batch_cut_value(const struct batch_cut *cut);

/* codes[n][k] <- the `most` largest positive scores[n][k], and 0 elsewhere, by sorting.  *least <-
 * the smallest code; 0 if fewer than `most` scores are positive.  ERR_MEMORY. */
int batch_select_reference(const float *scores, idx n, idx k, gidx most, float *codes,
                           float *least);

/* A running mean, over batches, of the smallest code of each batch; sum and weight are 0 at
 * first. */
struct batch_threshold {
  real sum, weight;
};
void batch_threshold_add(struct batch_threshold *t, float least);
/* 0 before the first batch. */
float batch_threshold_value(const struct batch_threshold *t);

#endif
