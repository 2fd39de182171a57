/* SPDX-License-Identifier: BSD-3-Clause
 * The value of a score in the order (N.2), and which scores a list wants.
 *
 * -D POSITIVE  1: for nonnegative codes, of vectors, not frames: the value of a finite score that
 *              is not positive is +0; 0: the value is the score
 *
 * A value that is not finite stays, and is always wanted: it is an error, -inf too. */
#ifndef POSITIVE_H
#define POSITIVE_H

#include "warp.h"

static __device__ inline float value_of(float score)
{
  int is_finite = magnitude(score) < KEY_INFINITE;
  return POSITIVE && is_finite && !(score > 0) ? 0 : score;
}

/* What a score is compared with, from the key that a list asks for.  The key 0 is that of every
 * score that is not positive. */
static __device__ inline float bound_of(int threshold)
{
  return POSITIVE && threshold == 0 ? __int_as_float(0xff800000) : __int_as_float(threshold);
}

static __device__ inline int is_wanted(float score, float bound)
{
  if (POSITIVE) return !(score < bound) || score == __int_as_float(0xff800000);
  return !(fabsf(score) < bound);
}

#endif
