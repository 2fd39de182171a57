/* SPDX-License-Identifier: BSD-3-Clause
 * Unfinished files are listed in a fixed array, so that a signal handler can remove them. */
#include "io/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/status.h"
#include "base/text.h"
#include "io/verify.h"

enum { MAX_UNFINISHED = 8 };

/* Temporary files of results that are being written; an empty name is a free slot. */
static char unfinished[MAX_UNFINISHED][sizeof((struct result_file *)0)->temporary];

/* End the process as the signal would have.  Of what result_discard() calls, unlink() is safe
 * here. */
static void signal_end(int number)
{
  result_discard();
  signal(number, SIG_DFL);
  raise(number);
}

/* Let no temporary file stay behind when the process ends: by a signal that is neither ignored nor
 * handled already, or by exit(), which HDF5 calls itself where it runs out of memory in some
 * places. */
static void endings_watch(void)
{
  static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU};
  static int is_watched;
  if (is_watched) return;
  is_watched = 1;
  atexit(result_discard);
  for (int i = 0; i < LENGTH(signals); i++) {
    struct sigaction before, now = {.sa_handler = signal_end};
    if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
      sigaction(signals[i], &now, NULL);
  }
}

static int unfinished_add(const char *path)
{
  endings_watch();
  for (int i = 0; i < MAX_UNFINISHED; i++)
    if (!unfinished[i][0] || strcmp(unfinished[i], path) == 0) {
      strcpy(unfinished[i], path);
      return OK;
    }
  FAIL(ERR_INTERNAL, "more than %d results in progress", MAX_UNFINISHED);
}

static void unfinished_remove(const char *path)
{
  for (int i = 0; i < MAX_UNFINISHED; i++)
    if (strcmp(unfinished[i], path) == 0) unfinished[i][0] = '\0';
}

void result_discard(void)
{
  for (int i = 0; i < MAX_UNFINISHED; i++) {
    if (unfinished[i][0]) unlink(unfinished[i]);
    unfinished[i][0] = '\0';
  }
}

static int ends_in(const char *text, const char *end)
{
  size_t length = strlen(text), tail = strlen(end);
  return length > tail && strcmp(text + length - tail, end) == 0;
}

/* out <- the folder of a path, "." when it names none. */
static void folder_of(const char *path, char *out, size_t capacity)
{
  const char *slash = strrchr(path, '/');
  int length = !slash ? 1 : slash == path ? 1 : (int)(slash - path);
  snprintf(out, capacity, "%.*s", length, slash ? path : ".");
}

/* Create a folder and those above it, as far as they are missing. */
static int folder_make(const char *folder)
{
  char path[4096];
  CHECK(strlen(folder) < sizeof path, ERR_CREATE, "the name '%s' is too long", folder);
  strcpy(path, folder);
  for (char *slash = path; slash;) {
    slash = strchr(slash + 1, '/');
    if (slash) *slash = '\0';
    CHECK(mkdir(path, 0777) == 0 || errno == EEXIST, ERR_CREATE, "cannot make folder '%s': %s",
          path, strerror(errno));
    if (slash) *slash = '/';
  }
  struct stat facts;
  CHECK(stat(folder, &facts) == 0 && S_ISDIR(facts.st_mode), ERR_CREATE, "'%s' is not a folder",
        folder);
  CHECK(access(folder, W_OK | X_OK) == 0, ERR_CREATE, "cannot write in folder '%s': %s", folder,
        strerror(errno));
  return OK;
}

/* Fill in the names. */
static int place_name(struct output_place *place, const char *output, const char *name)
{
  size_t capacity = sizeof place->file;
  int length = (int)strlen(output), is_file = ends_in(output, ".h5");
  const char *last = strrchr(output, '/');
  CHECK(length > 0 && strcmp(last ? last + 1 : output, ".h5") != 0, ERR_USAGE,
        "the output '%s' has no name", output);
  CHECK(text_is_clean(output), ERR_USAGE,
        "the output '%s' has control characters in its name, or is not UTF-8", output);
  CHECK((size_t)length + strlen(name) + 32 < capacity, ERR_CREATE, "the name '%s' is too long",
        output);
  while (length > 1 && output[length - 1] == '/') length--;
  int stem = is_file ? length - 3 : length;
  char joint = is_file ? '.' : '/';
  if (is_file)
    snprintf(place->file, capacity, "%s", output);
  else
    snprintf(place->file, capacity, "%.*s/%s", length, output, name);
  snprintf(place->used, capacity, "%.*s%cused.in", stem, output, joint);
  snprintf(place->log, capacity, "%.*s%crun.log", stem, output, joint);
  return OK;
}

int output_place(struct output_place *place, const char *output, const char *name, int force)
{
  char folder[4096];
  struct stat facts;
  TRY(place_name(place, output, name));
  folder_of(place->file, folder, sizeof folder);
  TRY(folder_make(folder));
  int there = lstat(place->file, &facts) == 0;
  CHECK(!there || !S_ISDIR(facts.st_mode), ERR_CREATE, "cannot create '%s': it is a folder",
        place->file);
  CHECK(!there || force, ERR_CREATE, "'%s' is there already: add --force to replace it",
        place->file);
  return OK;
}

int output_check_input(const struct output_place *place, const char *input)
{
  struct stat out, in;
  int same = stat(place->file, &out) == 0 && stat(input, &in) == 0 && out.st_dev == in.st_dev &&
             out.st_ino == in.st_ino;
  CHECK(!same, ERR_CREATE, "the result '%s' would replace an input of this run", place->file);
  return OK;
}

/* Has the folder's file system this many bytes free? */
static int space_check(const char *folder, gidx bytes)
{
  struct statvfs facts;
  CHECK(statvfs(folder, &facts) == 0, ERR_CREATE, "cannot use folder '%s': %s", folder,
        strerror(errno));
  double available = (double)facts.f_bavail * (double)facts.f_frsize;
  CHECK(available >= (double)bytes, ERR_CREATE,
        "folder '%s' has %.3g bytes free, the result needs %.3g", folder, available, (double)bytes);
  return OK;
}

int result_create(struct result_file *r, const char *path, const struct file_kind *kind, gidx bytes)
{
  char folder[4096];
  *r = (struct result_file){0};
  CHECK(strlen(path) + 5 < sizeof r->path, ERR_CREATE, "the name '%s' is too long", path);
  strcpy(r->path, path);
  snprintf(r->temporary, sizeof r->temporary, "%.*s.tmp", (int)sizeof r->temporary - 5, path);
  folder_of(path, folder, sizeof folder);
  TRY(space_check(folder, bytes));
  TRY(unfinished_add(r->temporary));
  TRY(h5_create(&r->h5, r->temporary));
  TRY(h5_attribute_text(&r->h5, "/", "format", FORMAT_NAME));
  TRY(h5_attribute_long(&r->h5, "/", "format_version", FORMAT_VERSION));
  TRY(h5_attribute_text(&r->h5, "/", "kind", kind->name));
  return OK;
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

/* Bring a file or folder to the disk.  Folders of some file systems cannot be synced: EINVAL. */
static int sync_path(const char *path, int flags)
{
  int file = open(path, O_RDONLY | O_CLOEXEC | flags);
  CHECK(file >= 0, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
  int error = fsync(file) == 0 ? 0 : errno;
  close(file);
  if (flags & O_DIRECTORY && error == EINVAL) error = 0;
  CHECK(!error, ERR_IO, "cannot bring '%s' to the disk: %s", path, strerror(error));
  return OK;
}

int result_publish(struct result_file *r, const struct run_fact *facts, int n_facts)
{
  char folder[4096];
  folder_of(r->path, folder, sizeof folder);
  TRY(facts_write(&r->h5, facts, n_facts));
  TRY(h5_close(&r->h5));
  TRY(file_verify(r->temporary, NULL));
  TRY(sync_path(r->temporary, 0));
  CHECK(rename(r->temporary, r->path) == 0, ERR_IO, "cannot rename '%s' to '%s': %s", r->temporary,
        r->path, strerror(errno));
  unfinished_remove(r->temporary);
  TRY(sync_path(folder, O_DIRECTORY));
  return OK;
}
