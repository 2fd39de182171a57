/* SPDX-License-Identifier: BSD-3-Clause
 * A library to preload: a power cut.  It comes at signal 40, or with FORGET_AT=N at the N-th write
 * or sync.  Some of what the process wrote and did not sync is then lost, and the process is
 * killed.
 *
 * Only files count whose path contains the text FORGET_IN.  A page of 4 KiB loses either all its
 * writes since the last sync or none; FORGET_SEED seeds this choice.  With FORGET_RANK=R only rank
 * R obeys FORGET_AT. */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, CUT = 40, FILES = 256 };
struct page { /* a part of a page that a write has changed; its bytes before the write */
  int file;   /* index in files[] */
  off_t at;
  size_t count;
  char bytes[PAGE];
};
static struct open_file {
  int file;
  struct stat facts;
} files[FILES];
static int n_files;
static struct page **pages;
static size_t count, room;
static long calls;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int counts(int file)
{
  const char *in = getenv("FORGET_IN");
  char link[64], path[PATH_MAX];
  if (!in || file <= 2) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  path[length < 0 ? 0 : length] = '\0';
  return path[0] == '/' && strstr(path, in) != NULL;
}

static int is_lost(const struct page *p)
{
  const char *seed = getenv("FORGET_SEED");
  unsigned long long x = (seed ? strtoull(seed, NULL, 10) : 0) * 0x9e3779b97f4a7c15ull;
  x += (unsigned long long)p->at / PAGE * 0xbf58476d1ce4e5b9ull + (unsigned)p->file;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  return (x ^ (x >> 27)) >> 20 & 1;
}

/* Undo writes of lost pages.  Later writes are undone first, so that a page ends as it was before
 * its first write. */
static void cut(void)
{
  for (size_t i = count; i-- > 0;) {
    const struct page *p = pages[i];
    if (!is_lost(p)) continue;
    struct stat now;
    if (fstat(files[p->file].file, &now) || now.st_size <= p->at) continue;
    size_t most = (size_t)(now.st_size - p->at), bytes = p->count < most ? p->count : most;
    syscall(SYS_pwrite64, files[p->file].file, p->bytes, bytes, p->at);
  }
  kill(getpid(), SIGKILL);
}

static void on_signal(int number)
{
  (void)number;
  cut();
}

static void hold(sigset_t *before)
{
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, CUT);
  pthread_sigmask(SIG_BLOCK, &wanted, before);
  pthread_mutex_lock(&lock);
}

static void let(const sigset_t *before)
{
  pthread_mutex_unlock(&lock);
  pthread_sigmask(SIG_SETMASK, before, NULL);
}

static void call_count(void)
{
  const char *at = getenv("FORGET_AT"), *of = getenv("FORGET_RANK"),
             *rank = getenv("OMPI_COMM_WORLD_RANK");
  if (of && (!rank || strcmp(of, rank) != 0)) return;
  if (++calls == (at ? atol(at) : 0)) cut();
}

/* The index of a file in files[], the same for all its descriptors. */
static int file_find(int file)
{
  char link[64];
  struct stat facts;
  int i = 0;
  if (fstat(file, &facts)) abort();
  while (i < n_files &&
         (files[i].facts.st_dev != facts.st_dev || files[i].facts.st_ino != facts.st_ino))
    i++;
  if (i < n_files) return i;
  if (n_files == FILES) abort();
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  files[n_files++] =
      (struct open_file){(int)syscall(SYS_openat, AT_FDCWD, link, O_RDWR | O_CLOEXEC, 0), facts};
  return i;
}

/* Store the present bytes of a part of one page. */
static void page_keep(int file, off_t at, size_t bytes)
{
  struct page *p = calloc(1, sizeof *p);
  if (count == room) pages = realloc(pages, (room = room ? 2 * room : 64) * sizeof(struct page *));
  if (!p || !pages) abort();
  p->file = file;
  p->at = at;
  p->count = bytes;
  syscall(SYS_pread64, files[file].file, p->bytes, bytes, at);
  pages[count++] = p;
}

ssize_t pwrite(int file, const void *from, size_t bytes, off_t at)
{
  sigset_t before;
  if (!counts(file)) return syscall(SYS_pwrite64, file, from, bytes, at);
  hold(&before);
  call_count();
  int of = file_find(file);
  for (off_t from = at, end = at + (off_t)bytes, next; from < end; from = next) {
    next = (from / PAGE + 1) * PAGE;
    page_keep(of, from, (size_t)((next < end ? next : end) - from));
  }
  ssize_t done = syscall(SYS_pwrite64, file, from, bytes, at);
  let(&before);
  return done;
}

ssize_t pwrite64(int file, const void *from, size_t bytes, off_t at)
{
  return pwrite(file, from, bytes, at);
}

/* Sync a file.  What was written before can no longer be lost. */
static int sync_call(long number, int file)
{
  sigset_t before;
  if (!counts(file)) return (int)syscall(number, file);
  hold(&before);
  int of = file_find(file);
  call_count();
  int error = (int)syscall(number, file);
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    if (error || pages[i]->file != of)
      pages[kept++] = pages[i];
    else
      free(pages[i]);
  }
  count = kept;
  let(&before);
  return error;
}

int fsync(int file)
{
  return sync_call(SYS_fsync, file);
}

int fdatasync(int file)
{
  return sync_call(SYS_fdatasync, file);
}

__attribute__((constructor)) static void begin(void)
{
  if (getenv("FORGET_IN")) signal(CUT, on_signal);
}
