/* SPDX-License-Identifier: BSD-3-Clause
 * System calls that are repeated when a signal interrupts them (EINTR): on network and user-space
 * file systems this can happen despite SA_RESTART.  Apart from the repetition, these functions
 * behave as the calls of POSIX.
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
/* Begin to write bytes at .. at + bytes - 1 of a file to the disk, without waiting; bytes 0: all
 * from `at` to the end of the file.  A later fsync then has less to write.  Does nothing if the
 * system or the file system has no such call. */
int retry_push(int file, off_t at, off_t bytes);

#endif
