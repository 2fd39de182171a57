/* SPDX-License-Identifier: BSD-3-Clause
 * Files and groups; the adaptor that turns HDF5's error stack into a status. */
#include "io/h5_inside.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of this thread's last failed call: the next call empties HDF5's own stack. */
static _Thread_local struct cause {
  char text[256];
  int is_system, is_memory;
} last;

/* The innermost entry comes first, and is the cause unless it says nothing; of a system error only
 * strerror's words are kept. */
static herr_t cause_visit(unsigned n, const H5E_error2_t *error, void *self)
{
  struct cause *cause = self;
  (void)n;
  if (cause->text[0] || !error->desc) return 0;
  const char *begin = strstr(error->desc, "error message = '");
  const char *end = begin ? strchr(begin + 17, '\'') : NULL;
  cause->is_system = begin != NULL;
  cause->is_memory = strstr(error->desc, "memory allocation failed") != NULL;
  if (end)
    snprintf(cause->text, sizeof cause->text, "%.*s", (int)(end - begin - 17), begin + 17);
  else
    snprintf(cause->text, sizeof cause->text, "%s", error->desc);
  return 0;
}

/* HDF5 calls this where it would print. */
static herr_t cause_keep(hid_t stack, void *data)
{
  (void)data;
  last = (struct cause){"", 0, 0};
  return H5Ewalk2(stack, H5E_WALK_UPWARD, cause_visit, &last);
}

/* HDF5 forgets some failed reads on the way, and of some failures it says nothing. */
static struct cause cause_take(int error)
{
  struct cause cause = last;
  last = (struct cause){"", 0, 0};
  if (!cause.is_system && (error == EIO || error == ESTALE)) {
    cause.is_system = 1;
    snprintf(cause.text, sizeof cause.text, "%s", strerror(error));
  }
  if (!cause.text[0]) strcpy(cause.text, "unknown cause");
  return cause;
}

int h5_fail(int code, const char *file, int line, const char *format, ...)
{
  struct cause cause = cause_take(errno);
  char subject[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(subject, sizeof subject, format, args);
  va_end(args);
  if (cause.is_system && code == ERR_INPUT) code = ERR_IO;
  if (cause.is_memory) code = ERR_MEMORY;
  return status_fail(code, file, line, "%s: %s", subject, cause.text);
}

/* A thread-safe HDF5 has a stack, and a way to print it, for each thread. */
int h5_begin(void)
{
  static int handled;
  static _Thread_local int begun;
  if (begun) return OK;
  if (!handled) H5dont_atexit();
  handled = 1;
  CHECK(H5open() >= 0 && H5Eset_auto2(H5E_DEFAULT, cause_keep, NULL) >= 0, ERR_MEMORY,
        "cannot start HDF5");
  begun = 1;
  return OK;
}

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

/* The serial driver whatever the environment says; closing a file closes what is open in it. */
static int file_access(hid_t *list)
{
  TRY_H5(*list = H5Pcreate(H5P_FILE_ACCESS), ERR_INTERNAL, "cannot set up HDF5");
  TRY_H5(H5Pset_fapl_sec2(*list), ERR_INTERNAL, "cannot set up HDF5");
  TRY_H5(H5Pset_fclose_degree(*list, H5F_CLOSE_STRONG), ERR_INTERNAL, "cannot set up HDF5");
  TRY_H5(H5Pset_libver_bounds(*list, H5F_LIBVER_V110, H5F_LIBVER_V110), ERR_INTERNAL,
         "cannot set up HDF5");
  return OK;
}

int h5_open(struct h5_file *f, const char *path)
{
  *f = (struct h5_file){0, path};
  struct stat facts;
  CHECK(stat(path, &facts) == 0, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
  CHECK(S_ISREG(facts.st_mode), ERR_IO, "cannot open '%s': it is not a regular file", path);
  CHECK(access(path, R_OK) == 0, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
  TRY(h5_begin());
  hid_t list;
  TRY(file_access(&list));
  f->id = H5Fopen(path, H5F_ACC_RDONLY, list);
  H5Pclose(list);
  if (f->id >= 0) return OK;
  f->id = 0;
  return h5_fail(ERR_INPUT, __FILE__, __LINE__, "'%s' is not an HDF5 file, or damaged", path);
}

/* A root group without times, so that equal runs give equal bytes. */
int h5_create(struct h5_file *f, const char *path)
{
  *f = (struct h5_file){0, path};
  TRY(h5_begin());
  hid_t list, creation;
  TRY(file_access(&list));
  TRY_H5(creation = H5Pcreate(H5P_FILE_CREATE), ERR_INTERNAL, "cannot set up HDF5");
  TRY_H5(H5Pset_obj_track_times(creation, 0), ERR_INTERNAL, "cannot set up HDF5");
  f->id = H5Fcreate(path, H5F_ACC_TRUNC, creation, list);
  H5Pclose(creation);
  H5Pclose(list);
  if (f->id >= 0) return OK;
  f->id = 0;
  return h5_fail(ERR_CREATE, __FILE__, __LINE__, "cannot create '%s'", path);
}

int h5_close(struct h5_file *f)
{
  hid_t id = f->id;
  f->id = 0;
  if (id) TRY(h5_begin());
  if (id) TRY_H5(H5Fclose(id), ERR_IO, "cannot close '%s'", f->path);
  return OK;
}

/* Prefix by prefix: a link below a missing group is an error to HDF5.  What cannot be told counts
 * as there, so that opening it names the damage. */
int h5_exists(const struct h5_file *f, const char *object)
{
  char path[1024];
  if (strlen(object) >= sizeof path || h5_begin() != OK) return 0;
  for (const char *end = object; *end;) {
    end = strchr(end + 1, '/');
    if (!end) end = object + strlen(object);
    snprintf(path, sizeof path, "%.*s", (int)(end - object), object);
    if (strcmp(path, "/") == 0) continue;
    htri_t there = H5Lexists(f->id, path, H5P_DEFAULT);
    if (there <= 0) return there < 0;
  }
  return 1;
}

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

int h5_group_create(const struct h5_file *f, const char *object)
{
  TRY(h5_groups_create(f, object, 1));
  return OK;
}

int h5_groups_create(const struct h5_file *f, const char *object, int whole)
{
  char path[1024];
  CHECK(strlen(object) < sizeof path, ERR_INTERNAL, "the name '%s' is too long", object);
  for (const char *end = strchr(object + 1, '/'); end; end = strchr(end + 1, '/')) {
    snprintf(path, sizeof path, "%.*s", (int)(end - object), object);
    if (!h5_exists(f, path)) TRY(group_create(f, path));
  }
  if (whole && strcmp(object, "/") != 0 && !h5_exists(f, object)) TRY(group_create(f, object));
  return OK;
}
