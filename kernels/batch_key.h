/* SPDX-License-Identifier: BSD-3-Clause
 * The key of a score: an integer with the same order.  batch_key() of model/batch_cut.h.
 *
 * Floor: kernels. */
#ifndef BATCH_KEY_H
#define BATCH_KEY_H

#include "warp.h"

static __device__ inline int batch_key(float score)
{
  return score > 0 ? __float_as_int(score) : 0;
}

#endif
