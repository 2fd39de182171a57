/* SPDX-License-Identifier: BSD-3-Clause
 * A library to preload: a thread that yields the core sleeps for a moment.  A rank of Open MPI that
 * waits yields again and again.  Beside other tests this would take more core time than the
 * work. */
#include <sched.h>
#include <time.h>

int sched_yield(void)
{
  const struct timespec moment = {.tv_nsec = 20000};
  return nanosleep(&moment, NULL);
}
