/* SPDX-License-Identifier: BSD-3-Clause
 * A library to preload: who yields the core sleeps for a moment.  A rank of Open MPI that waits
 * yields again and again, and beside other tests that takes more of a core than the work. */
#include <sched.h>
#include <time.h>

int sched_yield(void)
{
  const struct timespec moment = {.tv_nsec = 20000};
  return nanosleep(&moment, NULL);
}
