/* SPDX-License-Identifier: BSD-3-Clause
 * pthread_create() returns the same error for a limit of the user, for a limit of a control group,
 * and for too little memory for the stack. */
#include "base/thread.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/proc.h"
#include "base/status.h"

void thread_limits(char *text, size_t capacity)
{
  struct rlimit user = {RLIM_INFINITY, RLIM_INFINITY};
  gidx group = proc_pids("");
  char first[48] = "", second[48] = "";
  getrlimit(RLIMIT_NPROC, &user);
  if (user.rlim_cur != RLIM_INFINITY)
    snprintf(first, sizeof first, "%llu by ulimit -u", (unsigned long long)user.rlim_cur);
  if (group >= 0) snprintf(second, sizeof second, "%lld by pids.max", (long long)group);
  if (*first || *second)
    snprintf(text, capacity,
             "processes and threads are limited to %s%s%s: allow more, or take fewer ranks or "
             "--threads",
             first, *first && *second ? ", and to " : "", second);
  else
    snprintf(text, capacity,
             "ulimit -u and pids.max set no limit, so memory for its stack is missing: see "
             "ulimit -v, or take fewer ranks or --threads");
}

int thread_fail(const char *what, int error)
{
  char limits[256];
  thread_limits(limits, sizeof limits);
  FAIL(ERR_MEMORY, "cannot start %s: %s; %s", what, strerror(error), limits);
}
