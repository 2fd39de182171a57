/* SPDX-License-Identifier: BSD-3-Clause
 * A thread of its own, which nobody waits for until the job ends: whoever uses that GPU before
 * waits in the driver. */
#include "cli/gpu_start.h"

#include <pthread.h>
#include <string.h>

#include "base/cores.h"
#include "base/environment.h"
#include "base/status.h"
#include "base/watchdog.h"
#include "comm/launcher.h"

static pthread_t thread;
static int is_begun;
static struct device_options options = {.kind = "cuda"};

static void *start(void *unused)
{
  device_warm(&options);
  return unused;
}

/* Is the flag a key of the command, and given? */
static int is_given(const struct run *run, const char *key)
{
  const int *flag = options_value(run->command->options, run->options, key);
  return flag && *flag;
}

/* A run that goes on may find that all is done. */
static int is_wanted(const struct run *run)
{
  const char *const *device = options_value(run->command->options, run->options, "device");
  return device && *device && strcmp(*device, "cuda") == 0 && !is_given(run, "dry-run") &&
         !is_given(run, "resume");
}

void gpu_start_begin(const struct run *run)
{
  options.local_rank = launcher_local_rank();
  if (options.local_rank < 0 || !is_wanted(run)) return;
  if (!environment_is_shared() || !comm_start_is_quiet()) return;
  is_begun = cores_thread_begin(&thread, start, NULL) == 0;
}

void gpu_start_end(void)
{
  if (!is_begun) return;
  int step = watchdog_begin(ERR_DEVICE, "starting the GPU", NULL);
  pthread_join(thread, NULL);
  watchdog_end(step);
  is_begun = 0;
}
