/* SPDX-License-Identifier: BSD-3-Clause
 * Each system call is repeated in a loop of its own. */
#include "base/retry.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/pace.h"

int retry_open(const char *path, int flags)
{
  int file;
  do file = open(path, flags, 0666);
  while (file < 0 && errno == EINTR);
  return file;
}

ssize_t retry_pread(int file, void *out, size_t bytes, off_t at)
{
  double begun = pace_now();
  ssize_t got;
  do got = pread(file, out, bytes, at);
  while (got < 0 && errno == EINTR);
  pace_moved(PACE_READ, got, begun);
  return got;
}

ssize_t retry_pwrite(int file, const void *bytes, size_t count, off_t at)
{
  double begun = pace_now();
  ssize_t put;
  do put = pwrite(file, bytes, count, at);
  while (put < 0 && errno == EINTR);
  pace_moved(PACE_WRITE, put, begun);
  return put;
}

int retry_fsync(int file)
{
  double begun = pace_now();
  int failed;
  do failed = fsync(file);
  while (failed && errno == EINTR);
  pace_moved(PACE_WRITE, 0, begun);
  return failed;
}

int retry_push(int file, off_t at, off_t bytes)
{
  int failed;
  do failed = sync_file_range(file, at, bytes, SYNC_FILE_RANGE_WRITE);
  while (failed && errno == EINTR);
  int has_none = errno == ENOSYS || errno == EOPNOTSUPP || errno == EINVAL || errno == ESPIPE;
  return has_none ? 0 : failed;
}
