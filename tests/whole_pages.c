/* SPDX-License-Identifier: BSD-3-Clause
 * A library to preload: simulates a network file system whose client writes back whole pages.  When
 * a process first writes to a page after a sync, it keeps a copy of the page.  Each of its writes
 * changes this copy and writes the whole page, so that bytes that another process has written to
 * the page since then are lost.
 *
 * Only files count whose path contains the text WHOLE_IN.  WHOLE_PAGE: bytes of a page, 65536 by
 * default. */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct page {
  dev_t device;
  ino_t inode;
  off_t number;
  char *bytes;
  struct page *next;
};
static struct page *pages;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static off_t page_size(void)
{
  const char *text = getenv("WHOLE_PAGE");
  return text ? atol(text) : 65536;
}

static int counts(int file, struct stat *facts)
{
  const char *in = getenv("WHOLE_IN");
  char link[64], path[PATH_MAX];
  if (!in || file <= 2) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  path[length < 0 ? 0 : length] = '\0';
  return path[0] == '/' && strstr(path, in) != NULL && fstat(file, facts) == 0;
}

static ssize_t file_read(int file, void *to, size_t bytes, off_t at)
{
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  int again = (int)syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
  ssize_t got = syscall(SYS_pread64, again, to, bytes, at);
  syscall(SYS_close, again);
  return got;
}

/* This process's copy of a page. */
static struct page *page_find(int file, const struct stat *facts, off_t number)
{
  struct page *p = pages;
  while (p && (p->device != facts->st_dev || p->inode != facts->st_ino || p->number != number))
    p = p->next;
  if (p) return p;
  p = malloc(sizeof *p);
  char *bytes = calloc(1, (size_t)page_size());
  if (!p || !bytes) abort();
  *p = (struct page){facts->st_dev, facts->st_ino, number, bytes, pages};
  file_read(file, bytes, (size_t)page_size(), number * page_size());
  return pages = p;
}

ssize_t pwrite(int file, const void *from, size_t count, off_t at)
{
  struct stat facts;
  off_t size = page_size(), end = at + (off_t)count, most;
  if (!counts(file, &facts)) return syscall(SYS_pwrite64, file, from, count, at);
  pthread_mutex_lock(&lock);
  most = facts.st_size > end ? facts.st_size : end; /* the file must not become longer */
  ssize_t done = (ssize_t)count;
  for (off_t n = at / size; n * size < end && done > 0; n++) {
    struct page *p = page_find(file, &facts, n);
    off_t first = at > n * size ? at : n * size;
    off_t last = end < (n + 1) * size ? end : (n + 1) * size;
    memcpy(p->bytes + (first - n * size), (const char *)from + (first - at),
           (size_t)(last - first));
    size_t bytes = (size_t)(most < (n + 1) * size ? most - n * size : size);
    if (syscall(SYS_pwrite64, file, p->bytes, bytes, n * size) < 0) done = -1;
  }
  pthread_mutex_unlock(&lock);
  return done;
}

ssize_t pwrite64(int file, const void *from, size_t count, off_t at)
{
  return pwrite(file, from, count, at);
}

/* Sync a file, and drop this process's copies of its pages. */
static int sync_call(long number, int file)
{
  struct stat facts;
  int error = (int)syscall(number, file);
  if (error || !counts(file, &facts)) return error;
  pthread_mutex_lock(&lock);
  for (struct page **at = &pages; *at;) {
    struct page *p = *at;
    if (p->device == facts.st_dev && p->inode == facts.st_ino) {
      *at = p->next;
      free(p->bytes);
      free(p);
    } else
      at = &p->next;
  }
  pthread_mutex_unlock(&lock);
  return 0;
}

int fsync(int file)
{
  return sync_call(SYS_fsync, file);
}

int fdatasync(int file)
{
  return sync_call(SYS_fdatasync, file);
}
