/* SPDX-License-Identifier: BSD-3-Clause
 * A library to preload: the n-th call of a kind fails.  With a + all later ones fail, too.
 *
 * Armed by fault_arm(), or by the environment: FAULT=write:17 or FAULT=write:17+.  Kinds:
 *   open, write, read, fsync, rename, close   the call fails; close: of a file open for writing
 *   memory, own-memory, own-all   an allocation fails: see fault_arm()
 *   own-thread, omp-thread   a thread of the program, or of OpenMP, is not started
 *   room   fallocate() fails
 *   full   statvfs() says that 1 MB is free
 *   look, list, entry   lstat(), opendir() or readdir() fails
 *   lock   flock() fails, as on a file system without locks
 *   push   sync_file_range() fails
 *   lose   pwrite() writes nothing, but succeeds
 *   interrupt   every second call fails with EINTR
 *   stall   the n-th read takes STALL_SECONDS; stall-open and so on: the n-th call of that kind;
 *           stall-any: the n-th call of any of these kinds
 *   gate   the n-th call that stall-any would count makes the file FAULT_GATE, and waits until that
 *          file is gone
 *   signal   the process gets the signal FAULT_SIGNAL at the n-th call that stall-any would count
 *   cut, spoil, forge, append, replace   a file is changed just before the n-th read: change_names
 *   linger   the n-th read of LONG_READ bytes or more takes a little time, and _exit() longer
 *   late   the n-th clock_gettime() of a thread other than the first takes a little time
 *   wake   the n-th pthread_cond_wait() of a thread other than the first returns late; _exit()
 *          takes longer
 *   jump, back   from the n-th time that it is read, the wall clock is a day ahead, or behind
 *   stop-init, stop-dup, stop-finalize   the process is stopped at this call of MPI
 *   stop-inside, kill-inside   it is stopped or killed n microseconds after MPI_Finalize() began
 *   term-init   it gets SIGTERM when MPI begins, and prints a line when MPI has begun
 *   stop-exit   it is stopped when it exits
 *
 * With FAULT_OF=NAME only files count whose path ends in NAME, where * stands for any text.  With
 * FAULT_IN=FOLDER only files count whose path contains FOLDER.  With FAULT_RANK=R only rank R has
 * the fault.  With FAULT_TAKES=N a handler of signal N is installed while MPI begins, as a library
 * that MPI loads may do. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t align, size_t size);
void fault_arm(const char *kind, long n, int lasting);

enum { STALL_SECONDS = 30, LINGER_MICROSECONDS = 300000, LONG_READ = 30000 };
enum { LATE_MICROSECONDS = 10000, LOOK_MICROSECONDS = 1000 };
enum { DAY = 86400, MAX_FRAMES = 24, NEAR_FRAMES = 2 };
enum kind {
  NONE,
  WRITE,
  READ,
  STALL,
  LINGER,
  LATE,
  WAKE,
  FSYNC,
  RENAME,
  MEMORY,
  OWN_MEMORY,
  OWN_ALL,
  JUMP,
  STALL_OPEN,
  STALL_STAT,
  STALL_WRITE,
  STALL_FSYNC,
  STALL_RENAME,
  STALL_CLOSE,
  STALL_FLUSH,
  STALL_UNLINK,
  STALL_ANY,
  GATE,
  SIGNAL,
  OPEN,
  STOP_INIT,
  TERM_INIT,
  STOP_DUP,
  STOP_FINALIZE,
  STOP_INSIDE,
  KILL_INSIDE,
  STOP_EXIT,
  INTERRUPT,
  OWN_THREAD,
  OMP_THREAD,
  LOSE,
  ROOM,
  LOOK,
  LIST,
  ENTRY,
  LOCK,
  PUSH,
  CLOSE,
  BACK,
  FULL,
  KINDS,
  CHANGE
};
static const char *const kinds[KINDS] = {
    "none",        "write",       "read",         "stall",       "linger",        "late",
    "wake",        "fsync",       "rename",       "memory",      "own-memory",    "own-all",
    "jump",        "stall-open",  "stall-stat",   "stall-write", "stall-fsync",   "stall-rename",
    "stall-close", "stall-flush", "stall-unlink", "stall-any",   "gate",          "signal",
    "open",        "stop-init",   "term-init",    "stop-dup",    "stop-finalize", "stop-inside",
    "kill-inside", "stop-exit",   "interrupt",    "own-thread",  "omp-thread",    "lose",
    "room",        "look",        "list",         "entry",       "lock",          "push",
    "close",       "back",        "full"};
/* cut: to half of its length.  spoil: some bytes of the second half are overwritten.  forge: as
 * spoil, and then the file gets its old times again.  append: a byte more.  replace: an empty file
 * takes its name. */
static const char *const change_names[] = {"cut", "spoil", "forge", "append", "replace"};
static const char *change; /* of change_names, if armed is CHANGE */
static enum kind armed;
static uintptr_t begin, end; /* addresses of the program's code */
static long left;            /* calls up to the one that fails; negative after it */
static long first;           /* `left` at the start, when armed by the environment */
static int lasts;            /* 1: later calls fail, too */

/* Set begin and end.  The first object that is listed is the program. */
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

/* From now on the n-th call (from 1) of a kind fails.  Kind memory: any allocation.  own-memory:
 * allocations by the program's own code.  own-all: these, and those of functions of the C library
 * that copy or format text for the program.  "" disarms. */
void fault_arm(const char *kind, long n, int lasting)
{
  left = n;
  lasts = lasting;
  dl_iterate_phdr(program_find, NULL);
  armed = NONE;
  for (int i = 0; i < KINDS; i++)
    if (!strcmp(kind, kinds[i])) armed = (enum kind)i;
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
  const char *of = getenv("FAULT_RANK"), *rank = getenv("OMPI_COMM_WORLD_RANK");
  if (!colon || colon - text >= (long)sizeof kind) return;
  if (of && (!rank || strcmp(of, rank))) return;
  memcpy(kind, text, (size_t)(colon - text));
  fault_arm(kind, atol(colon + 1), strchr(colon, '+') != NULL);
  first = left;
}

static int fails(enum kind kind)
{
  if (armed != kind) return 0;
  left--;
  return left == 0 || (left < 0 && lasts);
}

static int is_path_named(const char *path)
{
  const char *name = getenv("FAULT_OF"), *folder = getenv("FAULT_IN");
  char pattern[PATH_MAX];
  if (folder && !strstr(path, folder)) return 0;
  snprintf(pattern, sizeof pattern, "*%s", name ? name : "");
  return fnmatch(pattern, path, 0) == 0;
}

static int is_named(int file)
{
  char link[64], path[PATH_MAX];
  if (!getenv("FAULT_OF") && !getenv("FAULT_IN")) return 1;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  path[length < 0 ? 0 : length] = '\0';
  return is_path_named(path);
}

static int is_written(int file)
{
  return (fcntl(file, F_GETFL) & O_ACCMODE) != O_RDONLY;
}

static int is_own(const void *caller)
{
  return (uintptr_t)caller >= begin && (uintptr_t)caller < end;
}

/* Is this call interrupted by a signal?  Every second one is, as may happen on a file system in
 * user space. */
static int is_interrupted(int is_counted)
{
  if (armed != INTERRUPT || !is_counted || left-- % 2) return 0;
  errno = EINTR;
  return 1;
}

/* Does a call on this file count?  Those on stdout, stderr and sockets do not. */
static int is_regular(int file)
{
  struct stat facts;
  return file > 2 && fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && is_named(file);
}

/* Print on stderr the time, by the monotonic clock, at which something begins to hang. */
static void fault_tell(void)
{
  char text[64];
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  int length = snprintf(text, sizeof text, "fault at %lld.%03ld\n", (long long)now.tv_sec,
                        now.tv_nsec / 1000000);
  syscall(SYS_write, STDERR_FILENO, text, length);
}

/* When the process exits: with FAULT_COUNT in the environment print how many calls were counted;
 * with FAULT=stop-exit stop the process. */
__attribute__((destructor)) static void calls_tell(void)
{
  if (getenv("FAULT_COUNT")) fprintf(stderr, "fault calls=%ld\n", first - left);
  if (armed != STOP_EXIT) return;
  fault_tell();
  raise(SIGSTOP);
}

/* Make the file FAULT_GATE, and wait until another program removes it. */
static void gate_wait(void)
{
  const char *gate = getenv("FAULT_GATE");
  if (!gate) return;
  syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, gate, O_WRONLY | O_CREAT, 0600));
  while (syscall(SYS_faccessat, AT_FDCWD, gate, F_OK) == 0) usleep(LOOK_MICROSECONDS);
}

static int is_any(void)
{
  return armed == STALL_ANY || armed == GATE || armed == SIGNAL;
}

/* Count a call of a kind.  If it is the one that was armed, hang, wait at the gate, or send the
 * signal. */
static void stall(enum kind kind)
{
  int saved = errno;
  const char *number = getenv("FAULT_SIGNAL");
  if (fails(SIGNAL)) kill(getpid(), number ? atoi(number) : SIGKILL);
  if (fails(GATE)) gate_wait();
  if (fails(kind) || fails(STALL_ANY)) {
    fault_tell();
    sleep(STALL_SECONDS);
  }
  errno = saved;
}

/* Paths count only with FAULT_OF or FAULT_IN, since libraries look for many files. */
static void stall_path(enum kind kind, const char *path)
{
  if (armed != kind && !is_any()) return;
  if ((getenv("FAULT_OF") || getenv("FAULT_IN")) && path && is_path_named(path)) stall(kind);
}

static void stall_file(enum kind kind, int file)
{
  if ((armed == kind || is_any()) && is_regular(file)) stall(kind);
}

ssize_t write(int file, const void *bytes, size_t count)
{
  if (armed == INTERRUPT && is_interrupted(is_regular(file))) return -1;
  if (armed != WRITE || !is_regular(file) || !fails(WRITE))
    return syscall(SYS_write, file, bytes, count);
  errno = ENOSPC;
  return -1;
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at)
{
  stall_file(STALL_WRITE, file);
  if (armed == INTERRUPT && is_interrupted(is_regular(file))) return -1;
  if (armed == LOSE && is_named(file) && fails(LOSE)) return (ssize_t)count;
  if (armed != WRITE || !is_named(file) || !fails(WRITE))
    return syscall(SYS_pwrite64, file, bytes, count, at);
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
  if (armed == INTERRUPT) return is_interrupted(is_regular(file));
  if (armed != READ && armed != STALL && armed != LINGER && armed != CHANGE && !is_any()) return 0;
  if (!is_regular(file)) return 0;
  if (fails(CHANGE)) file_change(file);
  stall(STALL);
  if (count >= LONG_READ && fails(LINGER)) usleep(LINGER_MICROSECONDS);
  if (!fails(READ)) return 0;
  errno = EIO;
  return 1;
}

/* The program looks at the clock when a phase begins and ends. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
  if (armed == LATE && syscall(SYS_gettid) != getpid() && fails(LATE)) usleep(LATE_MICROSECONDS);
  int error = (int)syscall(SYS_clock_gettime, clock, now);
  if (armed == JUMP && clock == CLOCK_REALTIME && !error) {
    fails(JUMP);
    if (left <= 0) now->tv_sec += DAY;
  }
  if (armed == BACK && clock == CLOCK_REALTIME && !error) {
    fails(BACK);
    if (left <= 0) now->tv_sec -= DAY;
  }
  return error;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
  struct timespec time;
  (void)zone;
  int error = clock_gettime(CLOCK_REALTIME, &time);
  *now = (struct timeval){time.tv_sec, time.tv_nsec / 1000};
  return error;
}

time_t time(time_t *out)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}

/* The system's function of this name, which this library replaces. */
#define NEXT(type, name) ((type)(uintptr_t)dlsym(RTLD_NEXT, name))

int pthread_cond_wait(pthread_cond_t *restrict change, pthread_mutex_t *restrict mutex)
{
  static int (*wait)(pthread_cond_t *, pthread_mutex_t *);
  if (!wait) /* glibc has an older version under the same name, for another pthread_cond_t */
    wait = (int (*)(pthread_cond_t *, pthread_mutex_t *))(uintptr_t)dlvsym(
        RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");
  if (!wait) wait = NEXT(int (*)(pthread_cond_t *, pthread_mutex_t *), "pthread_cond_wait");
  int error = wait(change, mutex);
  if (armed == WAKE && syscall(SYS_gettid) != getpid() && fails(WAKE)) usleep(LATE_MICROSECONDS);
  return error;
}

/* own-thread: started by the program; omp-thread: by a library with omp in its name. */
int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                   void *(*run)(void *), void *restrict argument)
{
  static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  Dl_info caller = {0};
  if (armed == OWN_THREAD || armed == OMP_THREAD) dladdr(__builtin_return_address(0), &caller);
  const char *name = caller.dli_fname ? strrchr(caller.dli_fname, '/') : NULL;
  if ((is_own(__builtin_return_address(0)) && fails(OWN_THREAD)) ||
      (name && strstr(name, "omp") && fails(OMP_THREAD)))
    return EAGAIN;
  if (!next)
    next = NEXT(int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *),
                "pthread_create");
  return next(thread, attributes, run, argument);
}

static void stop(enum kind kind)
{
  if (!fails(kind)) return;
  fault_tell();
  raise(SIGSTOP);
}

static void take(int number)
{
  (void)number;
}

int MPI_Init_thread(int *argc, char ***argv, int wanted, int *got)
{
  const char *takes = getenv("FAULT_TAKES");
  stop(STOP_INIT);
  int is_signalled = fails(TERM_INIT);
  if (is_signalled) raise(SIGTERM);
  if (takes) signal(atoi(takes), take);
  int error =
      NEXT(int (*)(int *, char ***, int, int *), "MPI_Init_thread")(argc, argv, wanted, got);
  if (is_signalled) fputs("fault: MPI has begun\n", stderr);
  return error;
}

int MPI_Comm_dup(void *from, void **to)
{
  stop(STOP_DUP);
  return NEXT(int (*)(void *, void **), "MPI_Comm_dup")(from, to);
}

static void *later(void *number)
{
  usleep((useconds_t)first);
  fault_tell();
  kill(getpid(), (int)(intptr_t)number);
  return NULL;
}

/* Start a thread that stops or kills the process after `first` microseconds. */
static void inside(void)
{
  pthread_t thread;
  int number = armed == STOP_INSIDE ? SIGSTOP : armed == KILL_INSIDE ? SIGKILL : 0;
  if (number) pthread_create(&thread, NULL, later, (void *)(intptr_t)number);
}

int MPI_Finalize(void)
{
  stop(STOP_FINALIZE);
  inside();
  return NEXT(int (*)(void), "MPI_Finalize")();
}

int open(const char *path, int flags, ...)
{
  va_list more;
  va_start(more, flags);
  int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, int) : 0;
  va_end(more);
  stall_path(STALL_OPEN, path);
  if (armed == INTERRUPT && is_interrupted(getenv("FAULT_IN") && is_path_named(path))) return -1;
  if (armed == OPEN && is_path_named(path) && fails(OPEN)) {
    errno = EIO;
    return -1;
  }
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
  va_list more;
  va_start(more, flags);
  int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, int) : 0;
  va_end(more);
  return open(path, flags, mode);
}

FILE *fopen(const char *path, const char *how)
{
  stall_path(STALL_OPEN, path);
  return NEXT(FILE * (*)(const char *, const char *), "fopen")(path, how);
}

int fflush(FILE *file)
{
  if (file && (armed == STALL_FLUSH || is_any())) stall_file(STALL_FLUSH, fileno(file));
  return NEXT(int (*)(FILE *), "fflush")(file);
}

int close(int file)
{
  if (armed >= STALL_OPEN) stall_file(STALL_CLOSE, file);
  int is_counted = armed == CLOSE && is_regular(file) && is_written(file);
  int failed = is_counted && fails(CLOSE), status = (int)syscall(SYS_close, file);
  if (!failed) return status;
  errno = EIO;
  return -1;
}

int stat(const char *restrict path, struct stat *restrict facts)
{
  stall_path(STALL_STAT, path);
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, facts, 0);
}

int lstat(const char *restrict path, struct stat *restrict facts)
{
  stall_path(STALL_STAT, path);
  if (armed == LOOK && is_path_named(path) && fails(LOOK)) {
    errno = EIO;
    return -1;
  }
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, facts, AT_SYMLINK_NOFOLLOW);
}

DIR *opendir(const char *path)
{
  if (armed != LIST || !is_path_named(path) || !fails(LIST))
    return NEXT(DIR * (*)(const char *), "opendir")(path);
  errno = EACCES;
  return NULL;
}

struct dirent *readdir(DIR *folder)
{
  if (armed != ENTRY || !is_named(dirfd(folder)) || !fails(ENTRY))
    return NEXT(struct dirent * (*)(DIR *), "readdir")(folder);
  errno = EIO;
  return NULL;
}

int access(const char *path, int how)
{
  stall_path(STALL_STAT, path);
  return (int)syscall(SYS_faccessat, AT_FDCWD, path, how);
}

int unlink(const char *path)
{
  if (armed != STALL_ANY || left <= 0) stall_path(STALL_UNLINK, path);
  return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

void _exit(int status)
{
  if (armed == LINGER || armed == WAKE) usleep(5 * LINGER_MICROSECONDS);
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

/* Is the file shared memory?  LLVM's OpenMP makes some, and aborts if it cannot. */
static int is_memory(int file)
{
  char link[64], path[16] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  return readlink(link, path, sizeof path - 1) > 0 && strncmp(path, "/dev/shm/", 9) == 0;
}

int ftruncate(int file, off_t size)
{
  stall_file(STALL_WRITE, file);
  if (is_memory(file) || armed != WRITE || !is_named(file) || !fails(WRITE))
    return (int)syscall(SYS_ftruncate, file, size);
  errno = ENOSPC;
  return -1;
}

int ftruncate64(int file, off_t size)
{
  return ftruncate(file, size);
}

int fallocate(int file, int mode, off_t at, off_t size)
{
  if (armed != ROOM || !is_named(file) || !fails(ROOM))
    return (int)syscall(SYS_fallocate, file, mode, at, size);
  errno = ENOSPC;
  return -1;
}

int fallocate64(int file, int mode, off_t at, off_t size)
{
  return fallocate(file, mode, at, size);
}

int statvfs(const char *path, struct statvfs *facts)
{
  static int (*next)(const char *, struct statvfs *);
  if (!next) *(void **)&next = dlsym(RTLD_NEXT, "statvfs");
  int failed = next(path, facts);
  if (!failed && armed == FULL && fails(FULL)) facts->f_bavail = (1 << 20) / facts->f_frsize;
  return failed;
}

int flock(int file, int how)
{
  if (armed != LOCK || !is_named(file) || !fails(LOCK)) return (int)syscall(SYS_flock, file, how);
  errno = ENOLCK;
  return -1;
}

int fsync(int file)
{
  stall_file(STALL_FSYNC, file);
  if (armed == INTERRUPT && is_interrupted(is_regular(file))) return -1;
  if (armed != FSYNC || !is_named(file) || !fails(FSYNC)) return (int)syscall(SYS_fsync, file);
  errno = EIO;
  return -1;
}

int sync_file_range(int file, off_t at, off_t bytes, unsigned flags)
{
  if (armed != PUSH || !is_named(file) || !fails(PUSH))
    return (int)syscall(SYS_sync_file_range, file, at, bytes, flags);
  errno = EIO;
  return -1;
}

int rename(const char *from, const char *to)
{
  stall_path(STALL_RENAME, from);
  if (armed != RENAME || !is_path_named(from) || !fails(RENAME))
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
  errno = EIO;
  return -1;
}

/* With FAULT_PATHS=FILE in the environment append a line for each allocation of kind own-all: its
 * number, a hash of the NEAR_FRAMES innermost frames of the program, and a hash of all its
 * frames. */
static void path_note(void)
{
  static _Thread_local int is_noting; /* the first backtrace() allocates */
  const char *list = getenv("FAULT_PATHS");
  void *frames[MAX_FRAMES];
  char line[64];
  if (!list || is_noting) return;
  is_noting = 1;
  uint64_t hash = 1469598103934665603U, near = 0;
  int depth = backtrace(frames, MAX_FRAMES), own = 0;
  for (int i = 0; i < depth; i++) {
    if (!is_own(frames[i])) continue;
    hash = (hash ^ ((uintptr_t)frames[i] - begin)) * 1099511628211U;
    if (++own <= NEAR_FRAMES) near = hash;
  }
  int length = snprintf(line, sizeof line, "%ld %016llx %016llx\n", first - left,
                        (unsigned long long)near, (unsigned long long)hash);
  long file = syscall(SYS_openat, AT_FDCWD, list, O_WRONLY | O_CREAT | O_APPEND, 0666);
  syscall(SYS_write, file, line, length);
  syscall(SYS_close, file);
  is_noting = 0;
}

/* Does this allocation fail?  caller: the return address. */
static int memory_fails(const void *caller)
{
  int own = is_own(caller);
  int failing = fails(MEMORY) || (own && (fails(OWN_MEMORY) || fails(OWN_ALL)));
  if (own && armed == OWN_ALL) path_note();
  if (failing) errno = ENOMEM;
  return failing;
}

/* Does this function of the C library fail, which allocates for the program?  Only for own-all. */
static int copy_fails(const void *caller)
{
  return armed == OWN_ALL && memory_fails(caller);
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

void *aligned_alloc(size_t align, size_t size)
{
  return memory_fails(__builtin_return_address(0)) ? NULL : __libc_memalign(align, size);
}

/* Functions of the C library that allocate for the program. */
char *strdup(const char *text)
{
  size_t bytes = strlen(text) + 1;
  char *copy = copy_fails(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
  return copy ? memcpy(copy, text, bytes) : NULL;
}

int vasprintf(char **restrict text, const char *restrict format, va_list arguments)
{
  if (copy_fails(__builtin_return_address(0))) return -1;
  return NEXT(int (*)(char **, const char *, va_list), "vasprintf")(text, format, arguments);
}

FILE *open_memstream(char **text, size_t *bytes)
{
  if (copy_fails(__builtin_return_address(0))) return NULL;
  return NEXT(FILE * (*)(char **, size_t *), "open_memstream")(text, bytes);
}

char *realpath(const char *restrict path, char *restrict out)
{
  if (!out && copy_fails(__builtin_return_address(0))) return NULL;
  return ((char *(*)(const char *, char *))(uintptr_t)dlvsym(RTLD_NEXT, "realpath", "GLIBC_2.3"))(
      path, out);
}
