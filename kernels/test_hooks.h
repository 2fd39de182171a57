/* SPDX-License-Identifier: BSD-3-Clause
 * Tests can weaken the bounds of the certified filter, to show that such faults would be noticed.
 * -D TEST_HOOKS  1: the faults are read from the arguments.  0, outside of tests: the faults are
 *                constant zeros, so that no argument can weaken the filter */
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
