/* SPDX-License-Identifier: BSD-3-Clause
 * System calls that are repeated when a signal interrupts them (EINTR): on network and user-space
 * file systems this can happen despite SA_RESTART.  Otherwise they are those of POSIX.
 *
 * Floor: base. */
#ifndef BASE_RETRY_H
#define BASE_RETRY_H

#include <stddef.h>
#include <sys/types.h>

/* A new file has the mode 0666, less the umask. */
int retry_open(const char *path, int flags);
ssize_t retry_pread(int file, void *out, size_t bytes, off_t at);
ssize_t retry_pwrite(int file, const void *bytes, size_t count, off_t at);
int retry_fsync(int file);
/* Bytes of a file from `at` on, 0: all, begin to go to the disk, and are not waited for: then less
 * is left for fsync.  Where the system or the file system has no such call all is left. */
int retry_push(int file, off_t at, off_t bytes);

#endif
