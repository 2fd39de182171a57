/* SPDX-License-Identifier: BSD-3-Clause
 * The loop of OpenMP: a thread that is free takes the next task. */
#include "base/team.h"

void team_run(int threads, gidx count, void (*task)(void *self, gidx i), void *self)
{
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (gidx i = 0; i < count; i++) task(self, i);
}
