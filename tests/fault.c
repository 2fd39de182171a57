/* SPDX-License-Identifier: BSD-3-Clause
 * A library to preload: the n-th call of a kind fails, once or from then on.
 *
 * Armed by fault_arm(), or by the environment: FAULT=write:17 or FAULT=write:17+.  Of kind stall
 * the n-th read does not fail, but takes STALL_SECONDS; of kind linger the n-th long read takes a
 * little time, and the end of the process more; of kind late the n-th look at the clock by another
 * thread than the first does.  Of the kinds of change_names the file is changed at the n-th read of
 * it, just before.  With FAULT_OF=NAME only files whose path ends in NAME count. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t align, size_t size);
void fault_arm(const char *kind, long n, int lasting);

enum { STALL_SECONDS = 30, LINGER_MICROSECONDS = 300000, LONG_READ = 30000 };
enum { LATE_MICROSECONDS = 10000 };
enum kind { NONE, WRITE, READ, STALL, LINGER, LATE, FSYNC, RENAME, MEMORY, OWN_MEMORY, CHANGE };
/* Cut by half; a part overwritten, and this with the time set back; a byte more; another file
 * renamed to its name. */
static const char *const change_names[] = {"cut", "spoil", "forge", "append", "replace"};
static const char *change; /* of kind CHANGE */
static enum kind armed;
static uintptr_t begin, end; /* of the program itself in memory */
static long left;            /* calls until the one that fails */
static long first;           /* the same, when armed by the environment */
static int lasts;

/* The first object is the program. */
static int program_find(struct dl_phdr_info *info, size_t size, void *data)
{
  (void)size, (void)data;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_X)) continue;
    begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    end = begin + info->dlpi_phdr[i].p_memsz;
  }
  return 1;
}

/* From here on the n-th call (from 1) of a kind fails: write, read, fsync, rename, memory, or
 * own-memory, which is memory asked for by the program and not by a library.  "" disarms. */
void fault_arm(const char *kind, long n, int lasting)
{
  left = n;
  lasts = lasting;
  dl_iterate_phdr(program_find, NULL);
  armed = !strcmp(kind, "write")        ? WRITE
          : !strcmp(kind, "read")       ? READ
          : !strcmp(kind, "stall")      ? STALL
          : !strcmp(kind, "linger")     ? LINGER
          : !strcmp(kind, "late")       ? LATE
          : !strcmp(kind, "fsync")      ? FSYNC
          : !strcmp(kind, "rename")     ? RENAME
          : !strcmp(kind, "memory")     ? MEMORY
          : !strcmp(kind, "own-memory") ? OWN_MEMORY
                                        : NONE;
  for (size_t i = 0; i < sizeof change_names / sizeof *change_names; i++)
    if (strcmp(kind, change_names[i]) == 0) {
      armed = CHANGE;
      change = change_names[i];
    }
}

__attribute__((constructor)) static void arm_from_environment(void)
{
  char kind[16] = "";
  const char *text = getenv("FAULT"), *colon = text ? strchr(text, ':') : NULL;
  if (!colon || colon - text >= (long)sizeof kind) return;
  memcpy(kind, text, (size_t)(colon - text));
  fault_arm(kind, atol(colon + 1), strchr(colon, '+') != NULL);
  first = left;
}

/* With FAULT_COUNT in the environment: how many calls there were. */
__attribute__((destructor)) static void calls_tell(void)
{
  if (getenv("FAULT_COUNT")) fprintf(stderr, "fault calls=%ld\n", first - left);
}

static int fails(enum kind kind)
{
  if (armed != kind) return 0;
  left--;
  return left == 0 || (left < 0 && lasts);
}

static int is_named(int file)
{
  char link[64], path[PATH_MAX];
  const char *name = getenv("FAULT_OF");
  if (!name) return 1;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path), tail = (ssize_t)strlen(name);
  return length >= tail && memcmp(path + length - tail, name, (size_t)tail) == 0;
}

/* What is said on stdout and stderr, and what MPI's processes say to each other, does not count. */
static int is_regular(int file)
{
  struct stat facts;
  return file > 2 && fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && is_named(file);
}

ssize_t write(int file, const void *bytes, size_t count)
{
  if (armed != WRITE || !is_regular(file) || !fails(WRITE))
    return syscall(SYS_write, file, bytes, count);
  errno = ENOSPC;
  return -1;
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at)
{
  if (!fails(WRITE)) return syscall(SYS_pwrite64, file, bytes, count, at);
  errno = ENOSPC;
  return -1;
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off_t at)
{
  return pwrite(file, bytes, count, at);
}

/* Change a file that the program has open for reading, as another program would. */
static void file_change(int file)
{
  char link[64], path[PATH_MAX], other[PATH_MAX + 8];
  struct stat facts;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  int out = open(link, O_WRONLY | (strcmp(change, "append") ? 0 : O_APPEND));
  if (length < 0 || out < 0 || fstat(file, &facts)) abort();
  path[length] = '\0';
  snprintf(other, sizeof other, "%s.other", path);
  off_t half = facts.st_size / 2;
  if (strcmp(change, "cut") == 0) syscall(SYS_ftruncate, out, half);
  if (strcmp(change, "append") == 0) syscall(SYS_write, out, "A", 1);
  if (strcmp(change, "spoil") == 0 || strcmp(change, "forge") == 0)
    for (off_t at = half; at < facts.st_size; at += 64) syscall(SYS_pwrite64, out, "A", 1, at);
  if (strcmp(change, "forge") == 0)
    futimens(out, (const struct timespec[]){facts.st_atim, facts.st_mtim});
  close(out);
  if (strcmp(change, "replace") != 0) return;
  close(open(other, O_WRONLY | O_CREAT, 0666));
  syscall(SYS_renameat2, AT_FDCWD, other, AT_FDCWD, path, 0);
}

static int read_fails(int file, size_t count)
{
  if (armed != READ && armed != STALL && armed != LINGER && armed != CHANGE) return 0;
  if (!is_regular(file)) return 0;
  if (fails(CHANGE)) file_change(file);
  if (fails(STALL)) sleep(STALL_SECONDS);
  if (count >= LONG_READ && fails(LINGER)) usleep(LINGER_MICROSECONDS);
  if (!fails(READ)) return 0;
  errno = EIO;
  return 1;
}

/* Phases begin and end with a look at the clock. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
  if (armed == LATE && syscall(SYS_gettid) != getpid() && fails(LATE)) usleep(LATE_MICROSECONDS);
  return (int)syscall(SYS_clock_gettime, clock, now);
}

void _exit(int status)
{
  if (armed == LINGER) usleep(5 * LINGER_MICROSECONDS);
  for (;;) syscall(SYS_exit_group, status);
}

ssize_t read(int file, void *bytes, size_t count)
{
  return read_fails(file, count) ? -1 : syscall(SYS_read, file, bytes, count);
}

ssize_t pread(int file, void *bytes, size_t count, off_t at)
{
  return read_fails(file, count) ? -1 : syscall(SYS_pread64, file, bytes, count, at);
}

ssize_t pread64(int file, void *bytes, size_t count, off_t at)
{
  return pread(file, bytes, count, at);
}

int ftruncate(int file, off_t size)
{
  if (!fails(WRITE)) return (int)syscall(SYS_ftruncate, file, size);
  errno = ENOSPC;
  return -1;
}

int ftruncate64(int file, off_t size)
{
  return ftruncate(file, size);
}

int fsync(int file)
{
  if (!fails(FSYNC)) return (int)syscall(SYS_fsync, file);
  errno = EIO;
  return -1;
}

int rename(const char *from, const char *to)
{
  if (!fails(RENAME)) return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
  errno = EIO;
  return -1;
}

/* caller: where the program or library goes on after the call. */
static int memory_fails(const void *caller)
{
  uintptr_t at = (uintptr_t)caller;
  int failing = fails(MEMORY) || (at >= begin && at < end && fails(OWN_MEMORY));
  if (failing) errno = ENOMEM;
  return failing;
}

void *malloc(size_t size)
{
  return memory_fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
  return memory_fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
  return memory_fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}

int posix_memalign(void **at, size_t align, size_t size)
{
  *at = memory_fails(__builtin_return_address(0)) ? NULL : __libc_memalign(align, size);
  return *at ? 0 : ENOMEM;
}
