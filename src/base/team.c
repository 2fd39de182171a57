/* SPDX-License-Identifier: BSD-3-Clause
 * The loop of OpenMP: a thread that is free takes the next task. */
#include "base/team.h"

#include <stdatomic.h>

static atomic_int spare = 1;

int team_spare(void)
{
  return spare;
}

void team_spare_set(int threads)
{
  spare = threads;
}

void team_run(int threads, gidx count, void (*task)(void *self, gidx i), void *self)
{
  if (threads > count) threads = count > 1 ? (int)count : 1; /* to wake others takes time */
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (gidx i = 0; i < count; i++) task(self, i);
}
