/* SPDX-License-Identifier: BSD-3-Clause
 * A virtual file driver that does what HDF5's own serial one (sec2) does, in blocks; each block is
 * a step of the watchdog.  So the watchdog sees every wait for the disk, whichever function of HDF5
 * causes it. */
#include "io/h5/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/retry.h"
#include "base/watchdog.h"
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

enum { STEP_BYTES = 64 << 20 }; /* read or written in one step */

/* The transfers of raw data noted by h5_driver_find(): their number, and the last one. */
static _Thread_local struct {
  int is_on, pieces;
  const void *chunk; /* the data that is not written, but only noted */
  haddr_t at, wanted;
  size_t bytes;
} search;

static int creates_over; /* created files keep their bytes */

/* HDF5 uses only the first member. */
struct disk_file {
  H5FD_t base;
  int file;
  dev_t device;
  ino_t inode;
  haddr_t used, end;          /* end of the addresses that HDF5 has allocated; end of the file */
  haddr_t kept, room, behind; /* kept: next address for other data in front of the chunks; room,
                               * behind: where chunks begin and end */
  int is_over, is_whole;      /* is_over: it was created over existing bytes; is_whole: it may be
                               * cut now */
  char path[];
};

/* Push the system's error onto HDF5's stack, in the form that h5_fail() recognises. */
static herr_t disk_fail(hid_t minor, const char *what)
{
  int error = errno;
  H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_VFL, minor,
           "%s, error message = '%s'", what, strerror(error));
  errno = error;
  return -1;
}

static int disk_flags(unsigned flags)
{
  return O_CLOEXEC | (flags & H5F_ACC_RDWR ? O_RDWR : O_RDONLY) |
         (flags & H5F_ACC_TRUNC ? O_TRUNC : 0) | (flags & H5F_ACC_CREAT ? O_CREAT : 0) |
         (flags & H5F_ACC_EXCL ? O_EXCL : 0);
}

/* NULL: errno says why. */
static struct disk_file *file_open(const char *path, int flags)
{
  struct stat facts;
  size_t length = strlen(path) + 1;
  struct disk_file *f = calloc(1, sizeof *f + length);
  if (!f) return NULL;
  memcpy(f->path, path, length);
  int step = watchdog_begin(ERR_IO, "opening", f->path);
  f->file = retry_open(path, flags);
  int failed = f->file < 0 || fstat(f->file, &facts);
  watchdog_end(step);
  if (failed) {
    int error = errno;
    if (f->file >= 0) close(f->file);
    free(f);
    errno = error;
    return NULL;
  }
  f->device = facts.st_dev;
  f->inode = facts.st_ino;
  f->end = (haddr_t)facts.st_size;
  return f;
}

static H5FD_t *disk_open(const char *path, unsigned flags, hid_t list, haddr_t most)
{
  int is_over = creates_over && flags & H5F_ACC_TRUNC;
  struct disk_file *f = file_open(path, disk_flags(is_over ? flags & ~H5F_ACC_TRUNC : flags));
  (void)list, (void)most;
  if (f && is_over) f->is_over = 1, f->end = 0; /* HDF5 takes it for new */
  if (f) return &f->base;
  if (errno == ENOMEM)
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_VFL, H5E_NOSPACE,
             "memory allocation failed");
  else
    disk_fail(H5E_CANTOPENFILE, "unable to open file");
  return NULL;
}

/* Returns the system's error, or 0. */
static int file_close(struct disk_file *f)
{
  int step = watchdog_begin(ERR_IO, "closing", f->path);
  int error = close(f->file) ? errno : 0;
  watchdog_end(step);
  free(f);
  return error;
}

static herr_t disk_close(H5FD_t *base)
{
  int error = file_close((struct disk_file *)base);
  errno = error;
  return error ? disk_fail(H5E_CANTCLOSEFILE, "unable to close file") : 0;
}

/* An order of files; 0: they are the same. */
static int disk_cmp(const H5FD_t *a, const H5FD_t *b)
{
  const struct disk_file *f = (const struct disk_file *)a, *g = (const struct disk_file *)b;
  if (f->device != g->device) return f->device < g->device ? -1 : 1;
  return f->inode < g->inode ? -1 : f->inode > g->inode;
}

/* The properties that sec2 reports, so that files get the same bytes. */
static herr_t disk_query(const H5FD_t *base, unsigned long *flags)
{
  (void)base;
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_POSIX_COMPAT_HANDLE |
           H5FD_FEAT_SUPPORTS_SWMR_IO | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

static haddr_t disk_used(const H5FD_t *base, H5FD_mem_t type)
{
  (void)type;
  return ((const struct disk_file *)base)->used;
}

static herr_t disk_use(H5FD_t *base, H5FD_mem_t type, haddr_t used)
{
  (void)type;
  ((struct disk_file *)base)->used = used;
  return 0;
}

void h5_driver_over(int is_on)
{
  creates_over = is_on;
}

/* HDF5's handle is the address of the descriptor. */
static struct disk_file *file_of(const void *handle)
{
  return (struct disk_file *)((char *)(uintptr_t)handle - offsetof(struct disk_file, file));
}

void h5_driver_whole(const void *handle)
{
  file_of(handle)->is_whole = 1;
}

void h5_driver_reserve(const void *handle, haddr_t base, haddr_t end)
{
  struct disk_file *f = (struct disk_file *)file_of(handle);
  f->kept = f->used;
  f->room = f->used = base;
  f->behind = end;
}

/* No metadata may end exactly where chunks begin, since HDF5 would extend them into the chunks. */
static haddr_t disk_allocate(H5FD_t *base, H5FD_mem_t type, hid_t list, hsize_t bytes)
{
  struct disk_file *f = (struct disk_file *)base;
  haddr_t at = f->used > f->behind ? f->used : f->behind;
  (void)list;
  if (search.is_on && type == H5FD_MEM_DRAW && search.wanted != HADDR_UNDEF) {
    at = search.wanted;
    search.wanted = HADDR_UNDEF;
  } else if (f->kept + bytes < f->room) {
    at = f->kept;
    f->kept += bytes;
  }
  if (at + bytes > INT64_MAX) return HADDR_UNDEF;
  if (at + bytes > f->used) f->used = at + bytes;
  return at;
}

static haddr_t disk_end(const H5FD_t *base, H5FD_mem_t type)
{
  (void)type;
  return ((const struct disk_file *)base)->end;
}

static herr_t disk_handle(H5FD_t *base, hid_t list, void **handle)
{
  (void)list;
  *handle = &((struct disk_file *)base)->file;
  return 0;
}

/* Read or write at most STEP_BYTES, as one step of the watchdog. */
static ssize_t block_read(const struct disk_file *f, void *to, size_t bytes, haddr_t at)
{
  int step = watchdog_begin(ERR_IO, "reading", f->path);
  ssize_t got = retry_pread(f->file, to, bytes < STEP_BYTES ? bytes : STEP_BYTES, (off_t)at);
  watchdog_end(step);
  return got;
}

static ssize_t block_write(const struct disk_file *f, const void *from, size_t bytes, haddr_t at)
{
  int step = watchdog_begin(ERR_IO, "writing", f->path);
  ssize_t put = retry_pwrite(f->file, from, bytes < STEP_BYTES ? bytes : STEP_BYTES, (off_t)at);
  watchdog_end(step);
  return put;
}

/* Note the address of raw data that HDF5 wants to read (from NULL) or write.  Returns 0 if no
 * search for this transfer is on: the driver then performs it. */
static int search_note(H5FD_mem_t type, haddr_t at, size_t bytes, const void *from)
{
  if (!search.is_on || type != H5FD_MEM_DRAW || from != search.chunk) return 0;
  search.pieces++;
  search.at = at;
  search.bytes = bytes;
  return 1;
}

static int is_beyond(haddr_t at, size_t bytes)
{
  if (at <= INT64_MAX && bytes <= INT64_MAX - at) return 0;
  errno = EFBIG;
  return 1;
}

/* Bytes beyond the end of the file are zero. */
static herr_t disk_read(H5FD_t *base, H5FD_mem_t type, hid_t list, haddr_t at, size_t bytes,
                        void *out)
{
  const struct disk_file *f = (const struct disk_file *)base;
  char *to = out;
  (void)list;
  if (is_beyond(at, bytes)) return disk_fail(H5E_READERROR, "file read failed");
  if (search_note(type, at, bytes, NULL)) return 0;
  while (bytes > 0) {
    ssize_t got = block_read(f, to, bytes, at);
    if (got < 0) return disk_fail(H5E_READERROR, "file read failed");
    if (got == 0) {
      memset(to, 0, bytes);
      return 0;
    }
    to += got;
    at += (haddr_t)got;
    bytes -= (size_t)got;
  }
  return 0;
}

void h5_driver_find(const void *chunk, haddr_t at)
{
  search.wanted = at;
  search.pieces = 0;
  search.chunk = chunk;
  search.is_on = 1;
}

int h5_driver_found(size_t bytes, haddr_t *at)
{
  search.is_on = 0;
  *at = search.at;
  return search.pieces == 1 && search.bytes == bytes;
}

int h5_driver_read(const void *handle, haddr_t at, size_t bytes, void *out)
{
  const struct disk_file *f = file_of(handle);
  char *to = out;
  if (is_beyond(at, bytes)) return 0;
  while (bytes > 0) {
    ssize_t got = block_read(f, to, bytes, at);
    if (got <= 0) return 0;
    to += got;
    at += (haddr_t)got;
    bytes -= (size_t)got;
  }
  return 1;
}

/* Returns the system's error, or 0. */
static int all_write(const struct disk_file *f, haddr_t at, size_t bytes, const void *in)
{
  const char *from = in;
  if (is_beyond(at, bytes)) return errno;
  while (bytes > 0) {
    ssize_t put = block_write(f, from, bytes, at);
    if (put < 0) return errno;
    from += put;
    at += (haddr_t)put;
    bytes -= (size_t)put;
  }
  return 0;
}

int h5_driver_write(const void *handle, haddr_t at, size_t bytes, const void *in)
{
  return all_write(file_of(handle), at, bytes, in);
}

const void *h5_driver_open(const char *path)
{
  const struct disk_file *f = file_open(path, O_CLOEXEC | O_RDWR | O_NOFOLLOW);
  return f ? &f->file : NULL;
}

int h5_driver_sync(const void *handle)
{
  const struct disk_file *f = file_of(handle);
  int step = watchdog_begin(ERR_IO, "bringing to the disk", f->path);
  int error = retry_fsync(f->file) ? errno : 0;
  watchdog_end(step);
  return error;
}

int h5_driver_push(const void *handle, haddr_t at, haddr_t bytes)
{
  const struct disk_file *f = file_of(handle);
  int step = watchdog_begin(ERR_IO, "writing", f->path);
  int error = retry_push(f->file, (off_t)at, (off_t)bytes) ? errno : 0;
  watchdog_end(step);
  return error;
}

int h5_driver_is_named(const void *handle)
{
  const struct disk_file *f = file_of(handle);
  struct stat facts;
  int step = watchdog_begin(ERR_IO, "looking at", f->path);
  int is = lstat(f->path, &facts) == 0 && facts.st_dev == f->device && facts.st_ino == f->inode;
  watchdog_end(step);
  return is;
}

int h5_driver_close(const void *handle)
{
  return file_close(file_of(handle));
}

static herr_t disk_write(H5FD_t *base, H5FD_mem_t type, hid_t list, haddr_t at, size_t bytes,
                         const void *in)
{
  struct disk_file *f = (struct disk_file *)base;
  (void)list;
  if (!search_note(type, at, bytes, in) && all_write(f, at, bytes, in))
    return disk_fail(H5E_WRITEERROR, "file write failed");
  if (at + bytes > f->end) f->end = at + bytes;
  return 0;
}

/* Give the file the length up to which HDF5 has allocated it.  A file created over existing bytes
 * keeps its length until it is whole. */
static herr_t disk_truncate(H5FD_t *base, hid_t list, hbool_t closing)
{
  struct disk_file *f = (struct disk_file *)base;
  (void)list, (void)closing;
  if (f->is_over ? !f->is_whole : f->end == f->used) return 0;
  int step = watchdog_begin(ERR_IO, "writing", f->path);
  herr_t done = ftruncate(f->file, (off_t)f->used)
                    ? disk_fail(H5E_SEEKERROR, "unable to extend file properly")
                    : 0;
  watchdog_end(step);
  if (done >= 0) f->end = f->used;
  return done;
}

/* The lock keeps out other programs.  It is no error if the file system has no locks.  Other runs
 * are kept out by the claims of outputs (io/place.h). */
static herr_t disk_flock(H5FD_t *base, int how)
{
  struct disk_file *f = (struct disk_file *)base;
  int step = watchdog_begin(ERR_IO, "locking", f->path);
  int error = flock(f->file, how) ? errno : 0;
  int failed = error && error != ENOSYS && error != ENOLCK && error != EOPNOTSUPP;
  watchdog_end(step);
  return failed ? disk_fail(H5E_BADFILE, "unable to lock file") : 0;
}

static herr_t disk_lock(H5FD_t *base, hbool_t is_writing)
{
  return disk_flock(base, (is_writing ? LOCK_EX : LOCK_SH) | LOCK_NB);
}

static herr_t disk_unlock(H5FD_t *base)
{
  return disk_flock(base, LOCK_UN);
}

static const H5FD_class_t disk_class = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)600, /* a private one: 512 and above */
#endif
    .name = "sagitta",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .open = disk_open,
    .close = disk_close,
    .cmp = disk_cmp,
    .query = disk_query,
    .alloc = disk_allocate,
    .get_eoa = disk_used,
    .set_eoa = disk_use,
    .get_eof = disk_end,
    .get_handle = disk_handle,
    .read = disk_read,
    .write = disk_write,
    .truncate = disk_truncate,
    .lock = disk_lock,
    .unlock = disk_unlock,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

herr_t h5_driver_set(hid_t list)
{
  static hid_t driver;
  if (driver <= 0) driver = H5FDregister(&disk_class);
  return driver < 0 ? -1 : H5Pset_driver(list, driver, NULL);
}
