/* SPDX-License-Identifier: BSD-3-Clause
 * Faults that tests set against the proof of the certified filter, to show that they would be
 * noticed.
 *
 * -D TEST_HOOKS  1: the numbers of the test are read; 0, for jobs: they are constants, so that the
 *                machine code cannot weaken the proof */
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
