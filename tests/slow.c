/* SPDX-License-Identifier: BSD-3-Clause
 * A library to preload: counts the bytes that a process reads from files and writes to them, and
 * limits their rates.
 *
 * Only files count whose path contains the text SLOW_OF.  With SLOW_TOLD=FILE a process appends the
 * line "read BYTES written BYTES" to FILE at its end.  SLOW_WRITE and SLOW_READ are limits in bytes
 * per second for all threads of a process; a call that is faster waits. */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* Reads, or writes, which pass one after another. */
struct way {
  pthread_mutex_t lock;
  double free_at; /* when all bytes so far have passed, by now() */
  long long bytes;
};
static struct way reads = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct way writes = {.lock = PTHREAD_MUTEX_INITIALIZER};

static double now(void)
{
  struct timespec t;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_until(double when)
{
  double left = when - now();
  if (left <= 0) return;
  struct timespec t = {(time_t)left, (long)(1e9 * (left - (double)(time_t)left))};
  nanosleep(&t, NULL);
}

/* Let bytes pass, from the time `begun` on or later, at the rate in the variable `name`. */
static void pass(struct way *way, double begun, ssize_t bytes, const char *name)
{
  const char *text = getenv(name);
  double rate = text ? atof(text) : 0, end;
  if (bytes <= 0) return;
  pthread_mutex_lock(&way->lock);
  way->bytes += bytes;
  if (way->free_at < begun) way->free_at = begun;
  if (rate > 0) way->free_at += (double)bytes / rate;
  end = way->free_at;
  pthread_mutex_unlock(&way->lock);
  if (rate > 0) wait_until(end);
}

static int counts(int file)
{
  const char *of = getenv("SLOW_OF");
  char link[64], path[PATH_MAX];
  if (!of || file <= 2) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  path[length < 0 ? 0 : length] = '\0';
  return path[0] == '/' && strstr(path, of) != NULL;
}

static ssize_t passed(struct way *way, int file, double begun, ssize_t done, const char *name)
{
  if (counts(file)) pass(way, begun, done, name);
  return done;
}

#define READ(call) passed(&reads, file, now(), call, "SLOW_READ")
#define WRITE(call) passed(&writes, file, now(), call, "SLOW_WRITE")

ssize_t read(int file, void *to, size_t bytes)
{
  return READ(syscall(SYS_read, file, to, bytes));
}
ssize_t pread(int file, void *to, size_t bytes, off_t at)
{
  return READ(syscall(SYS_pread64, file, to, bytes, at));
}
ssize_t pread64(int file, void *to, size_t bytes, off_t at)
{
  return READ(syscall(SYS_pread64, file, to, bytes, at));
}
ssize_t readv(int file, const struct iovec *to, int count)
{
  return READ(syscall(SYS_readv, file, to, count));
}
ssize_t write(int file, const void *from, size_t bytes)
{
  return WRITE(syscall(SYS_write, file, from, bytes));
}
ssize_t pwrite(int file, const void *from, size_t bytes, off_t at)
{
  return WRITE(syscall(SYS_pwrite64, file, from, bytes, at));
}
ssize_t pwrite64(int file, const void *from, size_t bytes, off_t at)
{
  return WRITE(syscall(SYS_pwrite64, file, from, bytes, at));
}

__attribute__((destructor)) static void tell(void)
{
  const char *name = getenv("SLOW_TOLD");
  FILE *f = name ? fopen(name, "a") : NULL;
  if (!f) return;
  fprintf(f, "read %lld written %lld\n", reads.bytes, writes.bytes);
  fclose(f);
}
