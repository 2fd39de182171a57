/* SPDX-License-Identifier: BSD-3-Clause
 * What tests do against the certified filter's proof, to see that the tests would notice.
 *
 * -D TEST_HOOKS  1: the test's numbers are read; 0, the form that jobs use: they are constants, so
 *                that its machine code cannot weaken the proof */
#ifndef TEST_HOOKS_H
#define TEST_HOOKS_H

#include "screen_types.h"

static __device__ inline struct screen_test test_of(const struct screen_args *a)
{
#if TEST_HOOKS
  return a->test;
#else
  struct screen_test none = {0, 0};
  (void)a;
  return none;
#endif
}

#endif
