/* SPDX-License-Identifier: BSD-3-Clause
 * HDF5 never creates a result's file itself: it writes into a temporary file that a job has created
 * (temporary.h, ranges.h). */
#include "io/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/retry.h"
#include "base/status.h"
#include "base/watchdog.h"
#include "io/sidecars.h"
#include "io/input_file.h"
#include "io/place.h"
#include "io/attributes.h"
#include "io/verify.h"

/* *available <- bytes that are free in a folder's file system.  Returns the system's error; 0:
 * there is none. */
static int space_find(const char *folder, double *available)
{
  struct statvfs facts = {0};
  int step = watchdog_begin(ERR_IO, "looking at", folder);
  int error = statvfs(folder, &facts) ? errno : 0;
  watchdog_end(step);
  *available = (double)facts.f_bavail * (double)facts.f_frsize;
  return error;
}

int output_has_room(const char *path, gidx bytes)
{
  char folder[4096];
  double available;
  path_folder(path, folder);
  return space_find(folder, &available) || available >= (double)bytes;
}

/* Check that the folder's file system has `bytes` bytes free.  With is_promised the check always
 * fails.  It is then called because the file system refused to reserve these bytes. */
static int space_check(const char *folder, gidx bytes, int is_promised)
{
  double available;
  int error = space_find(folder, &available);
  CHECK(!error, ERR_CREATE, "cannot use folder '%s': %s", folder, strerror(error));
  CHECK(available >= (double)bytes && !is_promised, ERR_CREATE,
        "folder '%s' has %.3g bytes free, the result needs %.3g", folder, available, (double)bytes);
  return OK;
}

static int file_create(struct result_file *r, const char *path, gidx bytes)
{
  char folder[4096];
  *r = (struct result_file){0};
  path_folder(path, folder);
  TRY(space_check(folder, bytes, 0));
  return temporary_create(&r->file, path, NULL, NULL);
}

static int root_write(const struct h5_file *h5, const struct file_kind *kind)
{
  TRY(h5_attribute_text(h5, "/", "format", FORMAT_NAME));
  TRY(h5_attribute_long(h5, "/", "format_version", FORMAT_VERSION));
  return h5_attribute_text(h5, "/", "kind", kind->name);
}

int result_create(struct result_file *r, const char *path, const struct file_kind *kind, gidx bytes)
{
  TRY(file_create(r, path, bytes));
  TRY(h5_create(&r->h5, r->file.name));
  return root_write(&r->h5, kind);
}

/* Reserve disk space.  Returns the system's error; 0: the space is reserved, or the file system
 * cannot reserve any. */
static int room_take(const char *name, gidx bytes)
{
  int step = watchdog_begin(ERR_IO, "taking room for", name);
  int file = retry_open(name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  int error = file >= 0 && fallocate(file, 0, 0, (off_t)bytes) == 0 ? 0 : errno;
  if (file >= 0) close(file);
  watchdog_end(step);
  int is_unknown = error == EOPNOTSUPP || error == ENOSYS || error == EINVAL || error == EINTR;
  return is_unknown ? 0 : error;
}

static int file_reserve(const struct result_file *r, const char *path, gidx bytes)
{
  char folder[4096];
  path_folder(path, folder);
  int error = room_take(r->file.name, bytes);
  if (error == ENOSPC) return space_check(folder, bytes, 1);
  CHECK(!error, ERR_CREATE, "cannot create '%s' of %.3g bytes: %s", r->file.name, (double)bytes,
        strerror(error));
  return OK;
}

int result_reserve(struct result_file *r, const char *path, gidx bytes)
{
  TRY(file_create(r, path, bytes));
  return file_reserve(r, path, bytes);
}

int result_join(struct result_file *r, const char *path, const char *name, gidx bytes)
{
  *r = (struct result_file){0};
  temporary_adopt(&r->file, path, name);
  return file_reserve(r, path, bytes);
}

/* Write zeros before base, and cut the file at end.  Returns the system's error, or 0. */
static int chunks_leave(const char *name, gidx base, gidx end)
{
  static const char zeros[1 << 16];
  int file = retry_open(name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  int error = file >= 0 && ftruncate(file, (off_t)end) == 0 ? 0 : errno;
  for (gidx at = 0; at < base && !error;) {
    size_t some = (size_t)(base - at) < sizeof zeros ? (size_t)(base - at) : sizeof zeros;
    ssize_t put = retry_pwrite(file, zeros, some, (off_t)at);
    if (put <= 0) error = put ? errno : EIO;
    at += put;
  }
  if (file >= 0 && close(file) && !error) error = errno; /* NFS reports failed writes here */
  return error;
}

int result_convert(struct result_file *r, const struct file_kind *kind, gidx base, gidx end)
{
  int step = watchdog_begin(ERR_IO, "writing", r->file.name);
  int error = chunks_leave(r->file.name, base, end);
  watchdog_end(step);
  CHECK(!error, ERR_IO, "cannot write '%s': %s", r->file.name, strerror(error));
  TRY(h5_create_over(&r->h5, r->file.name));
  return root_write(&r->h5, kind);
}

/* Write /run. */
static int facts_write(const struct h5_file *f, const struct run_fact *facts, int n_facts)
{
  TRY(h5_group_create(f, "/run"));
  for (int i = 0; i < n_facts; i++)
    if (facts[i].text)
      TRY(h5_attribute_text(f, "/run", facts[i].name, facts[i].text));
    else
      TRY(h5_attribute_real(f, "/run", facts[i].name, facts[i].number));
  return OK;
}

/* Flush a file or folder to the disk.  Some file systems cannot sync folders and return EINVAL,
 * which is no error here. */
static int sync_path(const char *path, int flags)
{
  int step = watchdog_begin(ERR_IO, "bringing to the disk", path);
  int file = retry_open(path, O_RDONLY | O_CLOEXEC | flags);
  int error = file >= 0 && retry_fsync(file) == 0 ? 0 : errno;
  if (file >= 0) close(file);
  watchdog_end(step);
  CHECK(file >= 0, ERR_IO, "cannot open '%s': %s", path, strerror(error));
  if (flags & O_DIRECTORY && error == EINVAL) error = 0;
  CHECK(!error, ERR_IO, "cannot bring '%s' to the disk: %s", path, strerror(error));
  return OK;
}

/* Start writing buffered bytes to the disk. */
static int push_path(const char *path)
{
  int step = watchdog_begin(ERR_IO, "writing", path);
  int file = retry_open(path, O_RDONLY | O_CLOEXEC);
  int error = file >= 0 && retry_push(file, 0, 0) == 0 ? 0 : errno;
  if (file >= 0) close(file);
  watchdog_end(step);
  CHECK(!error, ERR_IO, "cannot bring '%s' to the disk: %s", path, strerror(error));
  return OK;
}

int result_keep(struct result_file *r, const char *end)
{
  char folder[4096];
  path_folder(r->file.path, folder);
  TRY(temporary_keep(&r->file, end));
  return sync_path(folder, O_DIRECTORY);
}

int result_publish(struct result_file *r, const struct run_fact *facts, int n_facts)
{
  char folder[4096];
  path_folder(r->file.path, folder);
  TRY(input_files_settled());
  TRY(facts_write(&r->h5, facts, n_facts));
  TRY(attributes_digest(&r->h5));
  TRY(h5_whole(&r->h5));
  TRY(h5_close(&r->h5));
  TRY(push_path(r->file.name)); /* the disk writes while the file is read below */
  TRY(file_verify_rest(r->file.name, r->counts));
  TRY(sync_path(r->file.name, 0));
  TRY(temporary_publish(&r->file));
  sidecars_publish();
  TRY(sync_path(folder, O_DIRECTORY));
  output_left_discard(r->file.path);
  return OK;
}

void result_discard(void)
{
  temporaries_end(1);
}
