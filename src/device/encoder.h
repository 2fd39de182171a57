/* SPDX-License-Identifier: BSD-3-Clause
 * Operation of a device: supports and codes of rows by an imported encoder (N.24), over the
 * dictionary that it holds, which is that encoder's matrix.
 *
 * Floor: device.  Supports, scores and codes have the bits of model/encoder.h. */
#ifndef DEVICE_ENCODER_H
#define DEVICE_ENCODER_H

#include "device/device.h"
#include "model/encoder.h"
#include "model/route.h"

/* d = 1; the device has all k atoms, put in their order from 0 on; the encoder's own weights are
 * not looked at.  Rows are read on the device side; what is written is the host's. */
struct encoder_job {
  const struct encoder *encoder;
  const struct buffer *rows; /* [n][p] float, finite */
  idx n;
  idx *lengths;             /* [n] entries of each row, written */
  struct entry_list *found; /* emptied, and filled with them, row by row */
  /* Written: the lowest row with a score, or else a code, that is not finite, and the first such
   * atom of it; or row -1.  Then the entries are undefined. */
  struct bad_score bad;
};
/* ERR_MEMORY. */
int device_encoder(struct device *dev, struct encoder_job *job);

/* The first of n values that is not finite, -1: none. */
static inline gidx values_bad(const float *values, gidx n)
{
  for (gidx j = 0; j < n; j++)
    if (values[j] - values[j] != 0) return j;
  return -1;
}

#endif
