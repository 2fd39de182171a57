/* SPDX-License-Identifier: BSD-3-Clause
 * What the kernel's text files say: numbers of /proc, and the limits of control groups.
 *
 * Floor: base.
 *
 * A limit binds a group and all groups within it, so what counts is the least of the process's own
 * group and of those above it.  Where something cannot be found out there is no limit.  A test
 * gives as `root` a folder with proc/self/cgroup and sys/fs/cgroup in it; else it is "". */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include "base/types.h"

/* The number that follows a name at the beginning of a line of a file; -1 where there is none. */
gidx proc_number(const char *path, const char *name);

/* Cores' worth of time, version 2; INFINITY: no limit. */
double proc_quota(const char *root);

/* Bytes that are left below the limits of memory, of version 2 and of version 1: what is in use
 * counts, but not the cache of files, which the kernel drops first.  INT64_MAX: no limit. */
gidx proc_memory(const char *root);

/* Processes and threads that the groups may have, of version 2 and of version 1; -1: no limit. */
gidx proc_pids(const char *root);

/* Let the process open as many files as it may ask for, in the place of what it was given; returns
 * how many. */
gidx proc_files_allow(void);

#endif
