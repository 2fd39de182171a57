/* SPDX-License-Identifier: BSD-3-Clause
 * Only one dataset and one hash of the file are read. */
#include "io/density.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "base/watchdog.h"
#include "io/identity.h"

enum { PATH = 4096 };

static int is_there(const char *path)
{
  int step = watchdog_begin(ERR_IO, "looking at", path), failed = access(path, F_OK);
  watchdog_end(step);
  return !failed;
}

static int rows_read(const struct h5_file *f, idx k, struct arena *arena, struct density *d)
{
  struct h5_array a;
  TRY(h5_array_open(f, "/metrics/density", &a));
  int fits = a.rank == 1 && a.shape[0] == k;
  int status = fits ? arena_alloc(arena, &d->rows, k, sizeof *d->rows) : OK;
  if (fits && !status) status = h5_array_read(&a, 0, k, TYPE_I64, d->rows);
  h5_array_close(&a);
  return status;
}

static int file_read(const struct h5_file *f, idx k, struct arena *arena, struct density *d)
{
  struct identity identity = {0};
  int is_whole, has_density;
  TRY(h5_attribute_is(f, "/", "kind", "supports", &is_whole));
  TRY(h5_exists(f, "/metrics/density", &has_density));
  if (!is_whole || !has_density) return OK;
  TRY(identity_read(f, INPUTS_GROUP, &identity));
  d->dictionary = identity.dictionary;
  return rows_read(f, k, arena, d);
}

int density_open(const char *dictionary_file, idx k, struct arena *arena, struct density *d)
{
  char path[PATH];
  struct h5_file f;
  const char *slash = strrchr(dictionary_file, '/');
  int folder = slash ? (int)(slash + 1 - dictionary_file) : 0;
  *d = (struct density){0};
  int length = snprintf(path, sizeof path, "%.*ssupports.h5", folder, dictionary_file);
  if (length >= (int)sizeof path || !is_there(path)) return OK;
  TRY(h5_open(&f, path));
  return h5_close_after(&f, file_read(&f, k, arena, d));
}
