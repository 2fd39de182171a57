/* SPDX-License-Identifier: BSD-3-Clause
 * Device and inode, size and times are compared.  The time of the last status change shows a writer
 * that sets the modification time back.  This time also changes if a name of the file is removed,
 * which is allowed. */
#include "base/file_facts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/status.h"
#include "base/watchdog.h"

static struct file_facts facts_from(const struct stat *s)
{
  return (struct file_facts){.device = s->st_dev,
                             .inode = s->st_ino,
                             .names = s->st_nlink,
                             .size = s->st_size,
                             .mode = s->st_mode,
                             .modified = s->st_mtim,
                             .changed = s->st_ctim};
}

int file_facts_take(int descriptor, const char *path, struct file_facts *facts)
{
  struct stat s;
  int step = watchdog_begin(ERR_IO, "looking at", path), failed = fstat(descriptor, &s);
  watchdog_end(step);
  CHECK(!failed, ERR_IO, "cannot read '%s': %s", path, strerror(errno));
  *facts = facts_from(&s);
  return OK;
}

int file_facts_of(const char *path, struct file_facts *facts)
{
  struct stat s;
  int step = watchdog_begin(ERR_IO, "looking at", path), failed = stat(path, &s);
  watchdog_end(step);
  CHECK(!failed, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
  *facts = facts_from(&s);
  return OK;
}

static int same_time(const struct timespec *a, const struct timespec *b)
{
  return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

void file_facts_time(const struct timespec *time, char *text, size_t capacity)
{
  struct tm parts;
  size_t used =
      gmtime_r(&time->tv_sec, &parts) ? strftime(text, capacity, "%Y-%m-%dT%H:%M:%S", &parts) : 0;
  if (time->tv_nsec)
    snprintf(text + used, capacity - used, ".%09ldZ", (long)time->tv_nsec);
  else
    snprintf(text + used, capacity - used, "Z");
}

int file_facts_check(int descriptor, const char *path, const struct file_facts *before)
{
  struct file_facts now;
  char time[64];
  TRY(file_facts_take(descriptor, path, &now));
  CHECK(now.device == before->device && now.inode == before->inode, ERR_IO,
        "'%s' changed while it was read: it is another file now", path);
  CHECK(now.size == before->size, ERR_IO,
        "'%s' changed while it was read: it had %lld bytes, it has %lld", path,
        (long long)before->size, (long long)now.size);
  file_facts_time(&now.modified, time, sizeof time);
  CHECK(same_time(&now.modified, &before->modified), ERR_IO,
        "'%s' changed while it was read: it was modified at %s", path, time);
  file_facts_time(&now.changed, time, sizeof time);
  CHECK(same_time(&now.changed, &before->changed) || now.names < before->names, ERR_IO,
        "'%s' changed while it was read: its name, times or rights were set at %s", path, time);
  return OK;
}
