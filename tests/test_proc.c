/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the limits of control groups are found in both versions, in a group and in groups above
 * it.  The memory that a group uses is subtracted, except for its cache of files. */
#include "base/proc.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "tap.h"

static char root[] = "/tmp/test_proc.XXXXXX";

/* Write a file below the root, and make its folders. */
static void put(const char *name, const char *text)
{
  char path[512];
  snprintf(path, sizeof path, "%s/%s", root, name);
  for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
    *at = '\0';
    mkdir(path, 0700);
  }
  FILE *file = fopen(path, "w");
  if (!file || fputs(text, file) < 0 || fclose(file)) ok(0, "cannot write %s", path);
}

static void is_left(gidx want, const char *what)
{
  gidx left = proc_memory(root);
  ok(left == want, "%s: %lld bytes are left, not %lld", what, (long long)left, (long long)want);
}

static void pids_check(void)
{
  claim_begin("the limit of processes is that of the group, or of a group above it");
  put("proc/self/cgroup", "0::/many/step\n");
  ok(proc_pids(root) == -1, "no files: no limit");
  put("sys/fs/cgroup/many/step/pids.max", "max\n");
  ok(proc_pids(root) == -1, "max: no limit");
  put("sys/fs/cgroup/many/pids.max", "77\n");
  ok(proc_pids(root) == 77, "the limit of the group above: %lld", (long long)proc_pids(root));
  put("proc/self/cgroup", "3:pids:/many\n");
  put("sys/fs/cgroup/pids/many/pids.max", "55\n");
  ok(proc_pids(root) == 55, "version 1: %lld", (long long)proc_pids(root));
  claim_end();
}

static void version_2_check(void)
{
  claim_begin("control groups of version 2: free memory and the quota of cores");
  put("proc/self/cgroup", "0::/job/step\n");
  is_left(INT64_MAX, "no files");
  put("sys/fs/cgroup/job/step/memory.max", "max\n");
  put("sys/fs/cgroup/job/step/memory.current", "700\n");
  is_left(INT64_MAX, "max");
  put("sys/fs/cgroup/job/step/memory.max", "1000\n");
  is_left(300, "a limit");
  put("sys/fs/cgroup/job/step/memory.stat", "anon 100\nfile 650\ninactive_file 350\n"
                                            "active_file 250\nworkingset_activate_file 9\n");
  is_left(900, "with a cache of files");
  put("sys/fs/cgroup/job/memory.max", "5000\n");
  put("sys/fs/cgroup/job/memory.current", "4900\n");
  is_left(100, "the group above has less");
  put("sys/fs/cgroup/job/memory.max", "4000\n");
  is_left(0, "more is used than allowed");
  put("sys/fs/cgroup/job/memory.max", "max\n");
  put("sys/fs/cgroup/memory.max", "1200\n");
  put("sys/fs/cgroup/memory.current", "500\n");
  is_left(700, "the mount of a container");
  put("proc/self/cgroup", "0::/elsewhere/of/the/machine\n");
  is_left(700, "whose group has a path that is not mounted");
  ok(isinf(proc_quota(root)), "no limit of time");
  put("proc/self/cgroup", "0::/job/step\n");
  put("sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
  put("sys/fs/cgroup/job/cpu.max", "250000 100000\n");
  ok(proc_quota(root) == 2.5, "%g cores", proc_quota(root));
  claim_end();
}

static void version_1_check(void)
{
  claim_begin("control groups of version 1: free memory");
  put("proc/self/cgroup", "5:cpuset:/\n4:hugetlb,memory:/slurm/job\n0::/\n");
  put("sys/fs/cgroup/memory.max", "max\n");
  put("sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes", "4096\n");
  is_left(INT64_MAX, "the number that means none");
  put("sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "18446744073709551615\n");
  is_left(INT64_MAX, "a number of 64 bits");
  put("sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "8192\n");
  put("sys/fs/cgroup/memory/slurm/memory.usage_in_bytes", "5000\n");
  put("sys/fs/cgroup/memory/slurm/memory.stat", "inactive_file 1\ntotal_inactive_file 3000\n"
                                                "total_active_file 500\n");
  is_left(8192 - 1500, "a limit above");
  put("proc/self/cgroup", "4:memory_other:/slurm\n");
  is_left(INT64_MAX, "another controller");
  put("proc/self/cgroup", "not\na:list\n");
  is_left(INT64_MAX, "no list");
  claim_end();
}

int main(void)
{
  char command[64];
  if (!ok(mkdtemp(root) != NULL, "a folder for the files of a kernel")) return done_testing();
  pids_check();
  version_2_check();
  version_1_check();
  ok(memory_per_process(2) <= proc_memory(""), /* half, if other programs take no memory */
     "each of two processes gets no more than their group has left");
  snprintf(command, sizeof command, "rm -r %s", root);
  return system(command) ? 1 : done_testing();
}
