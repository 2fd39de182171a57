/* SPDX-License-Identifier: BSD-3-Clause
 * Numbers from the kernel's text files in /proc, and the limits of control groups.
 *
 * Floor: base.
 *
 * A limit binds a group and all groups inside it.  So the smallest limit of the process's own group
 * and of all groups above it counts.  What cannot be found out counts as no limit.  Tests give as
 * `root` a folder with proc/self/cgroup and sys/fs/cgroup; otherwise it is "". */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include "base/types.h"

/* The number after a name at the start of a line of a file; -1 if there is none. */
gidx proc_number(const char *path, const char *name);

/* text[capacity] <- the model name of the processor; if the system gives none, its architecture. */
void proc_cpu(char *text, size_t capacity);

/* CPU seconds per second that the groups of version 2 allow; INFINITY: no limit. */
double proc_quota(const char *root);

/* Bytes that are left below the memory limits of control groups, of version 2 and version 1.
 * Memory in use counts, but not the file cache, which the kernel drops first.  INT64_MAX: no
 * limit. */
gidx proc_memory(const char *root);

/* The number of processes and threads that control groups allow, of version 2 and version 1; -1: no
 * limit. */
gidx proc_pids(const char *root);

/* Raise the process's limit of open files to the most that it may set; returns this limit, at most
 * INT32_MAX; 0: it is not known. */
gidx proc_files_allow(void);

#endif
