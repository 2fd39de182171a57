/* SPDX-License-Identifier: BSD-3-Clause
 * Operation of a device: supports and codes of rows by the encoder of an autoencoder (N.24).  The
 * dictionary of the device is the matrix of that encoder.
 *
 * Floor: device.  Supports, scores and codes have the bits of model/encoder.h. */
#ifndef DEVICE_ENCODER_H
#define DEVICE_ENCODER_H

#include "device/device.h"
#include "model/encoder.h"
#include "model/route.h"

/* d = 1.  The caller has put all k atoms on the device (device_put_tile()), in ascending order from
 * atom 0.  The weights in `encoder` are not read.
 * Rows are read on the device side; all outputs are host memory. */
struct encoder_job {
  const struct encoder *encoder;
  const struct buffer *rows; /* [n][p] float, finite */
  idx n;
  idx *lengths;             /* [n] number of entries of each row, written */
  struct entry_list *found; /* emptied, then filled with the entries, row by row */
  /* Written: the lowest row with a score or a code that is not finite; row -1: there is none.  The
   * atom is the first of this row with such a score, or with such a code if all scores are finite.
   * If there is such a row, the entries are undefined. */
  struct bad_score bad;
};
/* ERR_MEMORY. */
int device_encoder(struct device *dev, struct encoder_job *job);

/* The index of the first of n values that is not finite; -1: none. */
static inline gidx values_bad(const float *values, gidx n)
{
  for (gidx j = 0; j < n; j++)
    if (values[j] - values[j] != 0) return j;
  return -1;
}

#endif
