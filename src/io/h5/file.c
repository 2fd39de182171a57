/* SPDX-License-Identifier: BSD-3-Clause
 * Opening and creating files, asking whether an object is there, and making groups. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/retry.h"
#include "base/watchdog.h"
#include "config.h"
#include "io/format.h"
#include "io/h5/driver.h"

void h5_library(char *text, size_t capacity)
{
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  snprintf(text, capacity, "%u.%u.%u", major, minor, release);
}

/* HDF5 calls this before it follows a link to another file; a negative answer makes the access
 * fail. */
static herr_t refuse_link(const char *file, const char *group, const char *target_file,
                          const char *target, unsigned *flags, hid_t access, void *data)
{
  (void)file, (void)group, (void)target_file, (void)target, (void)flags, (void)access, (void)data;
  return -1;
}

hid_t h5_access(hid_t class)
{
  hid_t list = H5Pcreate(class);
  if (list >= 0 && H5Pset_elink_cb(list, refuse_link, NULL) < 0) return -1;
  return list;
}

hid_t h5_links(void)
{
  static hid_t list = -1;
  if (list < 0) list = h5_access(H5P_LINK_ACCESS);
  return list;
}

/* *list <- a property list for opening files: our driver, even if the environment variable
 * HDF5_DRIVER names another one, and objects of the 1.10 format.  Closing a file also closes its
 * open objects. */
static int file_access(hid_t *list)
{
  TRY_H5(*list = H5Pcreate(H5P_FILE_ACCESS), ERR_INTERNAL, "cannot set up HDF5");
  TRY_H5(h5_driver_set(*list), ERR_INTERNAL, "cannot set up HDF5");
  TRY_H5(H5Pset_fclose_degree(*list, H5F_CLOSE_STRONG), ERR_INTERNAL, "cannot set up HDF5");
  TRY_H5(H5Pset_libver_bounds(*list, H5F_LIBVER_V110, H5F_LIBVER_V110), ERR_INTERNAL,
         "cannot set up HDF5");
  return OK;
}

/* Note the file as an input, with the descriptor that HDF5 has opened. */
static int input_begin(struct h5_file *f, const struct file_facts *before)
{
  void *descriptor = NULL;
  TRY_H5(H5Fget_vfd_handle(f->id, H5P_DEFAULT, &descriptor), ERR_INTERNAL,
         "HDF5 does not tell its descriptor of '%s'", f->path);
  return input_file_begin(&f->input, f->path, *(int *)descriptor, before);
}

/* f->version <- the format version of a file that says it is ours. */
static int version_read(struct h5_file *f)
{
  int ours;
  TRY(h5_attribute_is(f, "/", "format", FORMAT_NAME, &ours));
  if (!ours) return OK;
  TRY(h5_read_long(f, "/", "format_version", &f->version));
  CHECK(f->version >= 1, ERR_INPUT, "'%s' has format version %lld", f->path, (long long)f->version);
  return OK;
}

/* why[capacity] <- a message that the file is newer than this program, and which version can read
 * it. */
static void newer_text(const struct h5_file *f, char *why, int capacity)
{
  char writer[64] = "";
  int there;
  int status = h5_attribute_exists(f, "/run", "version", &there);
  if (!status && there) status = h5_read_text(f, "/run", "version", writer, sizeof writer);
  if (status) status_clear();
  snprintf(why, (size_t)capacity,
           "'%s' has format version %lld, and this program, Sagitta %s, reads 1 to %d: use the "
           "Sagitta that wrote it%s%s, or a newer one",
           f->path, (long long)f->version, PACKAGE_VERSION, FORMAT_VERSION, *writer ? ", " : "",
           writer);
}

/* Call this when HDF5 could not open the file.  ERR_IO: the file changed since its facts were
 * taken, or cannot be opened at all. */
static int unchanged_check(const char *path, const struct file_facts *before)
{
  int step = watchdog_begin(ERR_IO, "opening", path);
  int file = retry_open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), error = errno;
  int status = file < 0 ? OK : file_facts_check(file, path, before);
  if (file >= 0) close(file);
  watchdog_end(step);
  CHECK(file >= 0, ERR_IO, "cannot open '%s': %s", path, strerror(error));
  return status;
}

/* Call this when HDF5 refused the content of a file.  Returns the failure: the file is empty, has
 * another format, or is damaged. */
static int other_refuse(const char *path, const struct file_facts *facts)
{
  CHECK(facts->size > 0, ERR_INPUT, "'%s' is empty: copy it again, or make it anew", path);
  int is_explained = h5_fail_has_advice();
  TRY(format_check(path));
  if (is_explained) return h5_fail(ERR_INPUT, __FILE__, __LINE__, "cannot open '%s'", path);
  return h5_fail(ERR_INPUT, __FILE__, __LINE__,
                 "'%s' is damaged, cut, or still being written: copy it again, or make it anew",
                 path);
}

/* Open a file of any version. */
static int any_open(struct h5_file *f, const char *path)
{
  struct file_facts before;
  *f = (struct h5_file){.path = path};
  TRY(file_facts_of(path, &before));
  CHECK(S_ISREG(before.mode), ERR_IO, "cannot open '%s': it is not a regular file", path);
  int step = watchdog_begin(ERR_IO, "opening", path), may_read = access(path, R_OK) == 0;
  watchdog_end(step);
  CHECK(may_read, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
  TRY(h5_begin());
  hid_t list;
  TRY(file_access(&list));
  step = watchdog_begin(ERR_IO, "opening", path); /* HDF5 itself also looks up the name */
  f->id = H5Fopen(path, H5F_ACC_RDONLY, list);
  int code = f->id < 0 ? h5_fail_code(ERR_INPUT) : OK;
  watchdog_end(step);
  H5Pclose(list);
  if (f->id < 0) {
    f->id = 0;
    TRY(unchanged_check(path, &before));
    if (code == ERR_INPUT) return other_refuse(path, &before);
    return h5_fail(code, __FILE__, __LINE__, "cannot open '%s'", path);
  }
  TRY(input_begin(f, &before));
  int status = version_read(f);
  if (!status) return OK;
  return h5_close_after(f, status_pass(status, __FILE__, __LINE__));
}

int h5_open_newer(struct h5_file *f, const char *path, int *newer, char *why, int capacity)
{
  TRY(any_open(f, path));
  *newer = f->version > FORMAT_VERSION;
  if (*newer) newer_text(f, why, capacity);
  return OK;
}

int h5_open(struct h5_file *f, const char *path)
{
  char why[2048];
  int newer;
  TRY(h5_open_newer(f, path, &newer, why, sizeof why));
  if (!newer) return OK;
  return h5_close_after(f, status_set(ERR_INPUT, why));
}

/* The root group keeps no times, so that equal runs give files of equal bytes. */
int h5_create(struct h5_file *f, const char *path)
{
  *f = (struct h5_file){.path = path};
  TRY(h5_begin());
  hid_t list, creation;
  TRY(file_access(&list));
  TRY_H5(creation = H5Pcreate(H5P_FILE_CREATE), ERR_INTERNAL, "cannot set up HDF5");
  TRY_H5(H5Pset_obj_track_times(creation, 0), ERR_INTERNAL, "cannot set up HDF5");
  int step = watchdog_begin(ERR_IO, "opening", path); /* as in any_open() */
  f->id = H5Fcreate(path, H5F_ACC_TRUNC, creation, list);
  watchdog_end(step);
  H5Pclose(creation);
  H5Pclose(list);
  if (f->id >= 0) return OK;
  f->id = 0;
  return h5_fail(ERR_CREATE, __FILE__, __LINE__, "cannot create '%s'", path);
}

int h5_create_over(struct h5_file *f, const char *path)
{
  h5_driver_over(1);
  int status = h5_create(f, path);
  h5_driver_over(0);
  return status;
}

int h5_whole(const struct h5_file *f)
{
  void *handle = NULL;
  TRY_H5(H5Fget_vfd_handle(f->id, H5P_DEFAULT, &handle), ERR_INTERNAL,
         "HDF5 does not tell its descriptor of '%s'", f->path);
  h5_driver_whole(handle);
  return OK;
}

int h5_flush(const struct h5_file *f)
{
  TRY(h5_begin());
  TRY_H5(H5Fflush(f->id, H5F_SCOPE_GLOBAL), ERR_IO, "cannot write '%s'", f->path);
  return OK;
}

int h5_close(struct h5_file *f)
{
  hid_t id = f->id;
  f->id = 0;
  int status = input_file_end(&f->input);
  if (id) TRY(h5_begin());
  if (id) TRY_H5(H5Fclose(id), ERR_IO, "cannot close '%s'", f->path);
  return status;
}

int h5_close_after(struct h5_file *f, int status)
{
  status = input_file_failed(f->input, status);
  int closed = h5_close(f);
  return status ? status : closed;
}

/* *there <- does the last link of the path exist and lead to an object of this file?  The groups
 * above it exist. */
static int link_follow(const struct h5_file *f, const char *path, int *there)
{
  H5L_info_t link;
  htri_t found = H5Lexists(f->id, path, h5_links());
  TRY_H5(found, ERR_INPUT, "cannot look for '%s' in '%s'", path, f->path);
  *there = found > 0;
  if (!*there) return OK;
  TRY_H5(H5Lget_info(f->id, path, &link, h5_links()), ERR_INPUT,
         "cannot read the link '%s' of '%s'", path, f->path);
  if (link.type == H5L_TYPE_HARD) return OK;
  CHECK(link.type == H5L_TYPE_SOFT, ERR_INPUT,
        "'%s' of '%s' is a link out of the file, which is not followed", path, f->path);
  CHECK(H5Oexists_by_name(f->id, path, h5_links()) > 0, ERR_INPUT,
        "'%s' of '%s' is a link to nothing in this file, and one out of it is not followed", path,
        f->path);
  return OK;
}

/* Every prefix of the path is asked for in turn, because a link below a missing group is an error
 * to HDF5, and because HDF5 itself would follow a link in the middle to wherever it leads. */
int h5_exists(const struct h5_file *f, const char *object, int *there)
{
  char path[1024];
  *there = 0;
  CHECK(strlen(object) < sizeof path, ERR_INPUT, "the name '%s' is too long: give a shorter one",
        object);
  TRY(h5_begin());
  *there = 1;
  for (const char *end = object; *end && *there;) {
    end = strchr(end + 1, '/');
    if (!end) end = object + strlen(object);
    snprintf(path, sizeof path, "%.*s", (int)(end - object), object);
    if (strcmp(path, "/") != 0) TRY(link_follow(f, path, there));
  }
  return OK;
}

/* Like all objects that Sagitta writes, a group stores no times. */
static int group_create(const struct h5_file *f, const char *path)
{
  hid_t creation, group;
  TRY_H5(creation = H5Pcreate(H5P_GROUP_CREATE), ERR_INTERNAL, "cannot set up HDF5");
  TRY_H5(H5Pset_obj_track_times(creation, 0), ERR_INTERNAL, "cannot set up HDF5");
  group = H5Gcreate2(f->id, path, H5P_DEFAULT, creation, H5P_DEFAULT);
  H5Pclose(creation);
  TRY_H5(group, ERR_IO, "cannot write '%s' of '%s'", path, f->path);
  TRY_H5(H5Gclose(group), ERR_IO, "cannot write '%s' of '%s'", path, f->path);
  return OK;
}

/* Create a group unless it exists. */
static int group_make(const struct h5_file *f, const char *path)
{
  int there;
  TRY(h5_exists(f, path, &there));
  if (!there) TRY(group_create(f, path));
  return OK;
}

int h5_group_create(const struct h5_file *f, const char *object)
{
  TRY(h5_groups_create(f, object, 1));
  return OK;
}

int h5_groups_create(const struct h5_file *f, const char *object, int is_whole)
{
  char path[1024];
  CHECK(strlen(object) < sizeof path, ERR_INTERNAL, "the name '%s' is too long: give a shorter one",
        object);
  for (const char *end = strchr(object + 1, '/'); end; end = strchr(end + 1, '/')) {
    snprintf(path, sizeof path, "%.*s", (int)(end - object), object);
    TRY(group_make(f, path));
  }
  if (is_whole) TRY(group_make(f, object));
  return OK;
}
