/* SPDX-License-Identifier: BSD-3-Clause
 * Control groups are walked from the process's own one upwards.  In a container its path may
 * be the path on the host, which does not exist in the container.  The walk ends at the mount
 * point, which is the container's group. */
#include "base/proc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "base/num.h"

enum { MAX_PATH = 4096 };

gidx proc_number(const char *path, const char *name)
{
  char line[256], *end;
  gidx value = -1;
  size_t length = strlen(name);
  FILE *file = fopen(path, "r");
  while (file && value < 0 && fgets(line, sizeof line, file)) {
    if (strncmp(line, name, length) != 0) continue;
    /* a number beyond the range becomes LLONG_MAX */
    long long number = strtoll(line + length, &end, 10);
    if (end > line + length) value = number;
  }
  if (file) fclose(file);
  return value;
}

void proc_cpu(char *text, size_t capacity)
{
  static const char key[] = "model name";
  char line[256];
  struct utsname kind;
  snprintf(text, capacity, "%s", uname(&kind) ? "" : kind.machine);
  FILE *file = fopen("/proc/cpuinfo", "r");
  while (file && fgets(line, sizeof line, file)) {
    char *name = strchr(line, ':');
    if (!name || strncmp(line, key, sizeof key - 1) != 0) continue;
    name += 1 + strspn(name + 1, " ");
    name[strcspn(name, "\n")] = '\0';
    snprintf(text, capacity, "%s", name);
    break;
  }
  if (file) fclose(file);
}

/* Is the word in a list separated by commas?  Version 2 of control groups has an empty list, and
 * then the word is empty, too. */
static int list_has(char *list, const char *word)
{
  char *rest = list, *item;
  while ((item = strsep(&rest, ",")))
    if (strcmp(item, word) == 0) return 1;
  return 0;
}

/* group[MAX_PATH] <- the process's group, "/..." or "" for the topmost, from a line
 * "NUMBER:CONTROLLERS:GROUP".  Returns 0 if there is none. */
static int group_find(const char *root, const char *controller, char *group)
{
  char path[MAX_PATH], line[MAX_PATH];
  int found = 0;
  snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  FILE *file = fopen(path, "r");
  while (file && !found && fgets(line, sizeof line, file)) {
    char *rest = line;
    strsep(&rest, ":");
    char *list = strsep(&rest, ":");
    if (!rest || !list_has(list, controller)) continue;
    rest[strcspn(rest, "\n")] = '\0';
    strcpy(group, strcmp(rest, "/") ? rest : "");
    found = 1;
  }
  if (file) fclose(file);
  return found;
}

/* The smallest number that `look` finds in the folders of the process's group and of all groups
 * above it. */
static double groups_visit(const char *root, const char *controller, double (*look)(const char *))
{
  char group[MAX_PATH], folder[2 * MAX_PATH];
  double least = INFINITY;
  if (!group_find(root, controller, group)) return INFINITY;
  for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
    *end = '\0';
    snprintf(folder, sizeof folder, "%s/sys/fs/cgroup%s%s%s", root, *controller ? "/" : "",
             controller, group);
    least = fmin(least, look(folder));
  }
  return least;
}

static double quota_read(const char *folder)
{
  char path[3 * MAX_PATH];
  double quota, period;
  snprintf(path, sizeof path, "%s/cpu.max", folder);
  FILE *file = fopen(path, "r");
  int has = file && fscanf(file, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0;
  if (file) fclose(file);
  return has ? quota / period : INFINITY;
}

double proc_quota(const char *root)
{
  return groups_visit(root, "", quota_read);
}

static gidx group_number(const char *folder, const char *name, const char *line)
{
  char path[3 * MAX_PATH];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return proc_number(path, line);
}

/* The memory that a group has left, by the file names of its version.  In version 1 the counts that
 * begin with `total_` include the groups inside; in version 2 all counts do. */
static double memory_left(const char *folder, const char *limit, const char *usage,
                          const char *const caches[2])
{
  gidx most = group_number(folder, limit, ""), used = imax(0, group_number(folder, usage, ""));
  if (most < 0) return INFINITY;
  for (int i = 0; i < 2; i++) used -= imax(0, group_number(folder, "memory.stat", caches[i]));
  return (double)imax(0, most - imax(0, used));
}

static double memory_read(const char *folder)
{
  static const char *const caches[] = {"inactive_file ", "active_file "};
  return memory_left(folder, "memory.max", "memory.current", caches);
}

static double memory_read_1(const char *folder)
{
  static const char *const caches[] = {"total_inactive_file ", "total_active_file "};
  return memory_left(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", caches);
}

gidx proc_memory(const char *root)
{
  double left =
      fmin(groups_visit(root, "", memory_read), groups_visit(root, "memory", memory_read_1));
  /* If there is no limit, version 1 has one of about 2^63 bytes. */
  return left < 0x1p62 ? (gidx)left : INT64_MAX;
}

static double pids_read(const char *folder)
{
  gidx most = group_number(folder, "pids.max", "");
  return most < 0 ? INFINITY : (double)most;
}

gidx proc_pids(const char *root)
{
  double most = fmin(groups_visit(root, "", pids_read), groups_visit(root, "pids", pids_read));
  return most < 0x1p62 ? (gidx)most : -1;
}

gidx proc_files_allow(void)
{
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit)) return 0;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_max > INT32_MAX ? INT32_MAX : (gidx)limit.rlim_max;
}
