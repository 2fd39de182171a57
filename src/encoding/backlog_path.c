/* SPDX-License-Identifier: BSD-3-Clause
 * realpath() resolves folders that exist.  The names of folders that do not exist are appended as
 * they are written. */
#include "encoding/backlog_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static int length_check(int length, const char *name)
{
  CHECK(length < BACKLOG_NAME, ERR_CREATE, "the name '%.40s...' is too long: give a shorter one",
        name);
  return OK;
}

int backlog_path_name(const char *output, char *name)
{
  size_t length = strlen(output);
  int is_file = length > 3 && strcmp(output + length - 3, ".h5") == 0;
  int bytes = snprintf(name, BACKLOG_NAME, is_file ? "%s" : "%s/supports.h5", output);
  return length_check(bytes, output);
}

/* Append one component of a path to place: name[length], which is "..", "." or a name. */
static int path_step(char *place, const char *name, size_t length)
{
  char found[BACKLOG_NAME];
  if (length == 0 || (length == 1 && name[0] == '.')) return OK;
  if (length == 2 && strncmp(name, "..", 2) == 0) {
    char *slash = strrchr(place, '/');
    if (slash) *slash = '\0'; /* "" is the root */
    return OK;
  }
  int bytes = snprintf(found, sizeof found, "%s/%.*s", place, (int)length, name);
  TRY(length_check(bytes, found));
  strcpy(place, found);
  return OK;
}

/* Resolve the links in the folder so far. */
static int path_follow(char *place)
{
  char *resolved = realpath(place, NULL);
  CHECK(resolved || errno != ENOMEM, ERR_MEMORY, "cannot allocate the name '%s'", place);
  if (!resolved) return OK; /* not there yet */
  int length = snprintf(place, BACKLOG_NAME, "%s", strcmp(resolved, "/") == 0 ? "" : resolved);
  free(resolved);
  return length_check(length, place);
}

int backlog_path(const char *name, char *place)
{
  strcpy(place, name[0] == '/' ? "" : ".");
  if (place[0]) TRY(path_follow(place));
  const char *file = strrchr(name, '/');
  file = file ? file + 1 : name;
  for (const char *at = name; at < file;) {
    size_t length = strcspn(at, "/");
    TRY(path_step(place, at, length));
    TRY(path_follow(place));
    at += length + 1;
  }
  return path_step(place, file, strlen(file));
}
