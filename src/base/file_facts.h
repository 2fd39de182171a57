/* SPDX-License-Identifier: BSD-3-Clause
 * What the system knows of an open file.  It shows whether a file was changed while it was read.
 *
 * Floor: base.
 *
 * The open file counts, not its name.  A file that is replaced by rename, or removed, keeps its
 * bytes for processes that have it open; this is no change.  doc/formats.md lists the changes that
 * are not seen. */
#ifndef BASE_FILE_FACTS_H
#define BASE_FILE_FACTS_H

#include <sys/types.h>
#include <time.h>

struct file_facts {
  dev_t device;
  ino_t inode;
  nlink_t names; /* hard links */
  off_t size;    /* bytes */
  mode_t mode;
  struct timespec modified, changed;
};

/* *facts <- the facts of an open file; path is for the message.  ERR_IO: the system does not give
 * the facts. */
int file_facts_take(int descriptor, const char *path, struct file_facts *facts);

/* The same by name, following links.  ERR_IO: cannot open. */
int file_facts_of(const char *path, struct file_facts *facts);

/* ERR_IO if the facts of an open file have changed; the message names the fact that differs. */
int file_facts_check(int descriptor, const char *path, const struct file_facts *before);

/* text[capacity] <- a time as 2026-11-22T22:10:11.123456789Z. */
void file_facts_time(const struct timespec *time, char *text, size_t capacity);

#endif
