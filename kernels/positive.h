/* SPDX-License-Identifier: BSD-3-Clause
 * The value of a score in the order of (N.2), and which scores a list accepts.
 *
 * -D POSITIVE  1: for nonnegative codes (no frames), a finite score that is not positive has the
 *              value +0; 0: the value is the score
 * A score that is not finite, -inf included, is its own value and is always accepted, so that the
 * error is noticed. */
#ifndef POSITIVE_H
#define POSITIVE_H

#include "warp.h"

static __device__ inline float value_of(float score)
{
  int is_finite = magnitude(score) < KEY_INFINITE;
  return POSITIVE && is_finite && !(score > 0) ? 0 : score;
}

/* A list's threshold is a key.  Returns the bound for scores that corresponds to it.  If POSITIVE,
 * all finite scores that are not positive have key 0. */
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
