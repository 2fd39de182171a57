/* SPDX-License-Identifier: BSD-3-Clause
 * The labels are one dataset, which is read whole. */
#include "io/labels.h"

#include <stdlib.h>

#include "base/status.h"
#include "io/inputs.h"

static const struct input_standard standard = {.object = "/token", .file = "rows.h5"};

static int array_check(const struct h5_array *a, const char *name, gidx n, const char *rows)
{
  CHECK(a->type == TYPE_I32 || a->type == TYPE_I64, ERR_INPUT,
        "'%s' is not of int32 or int64: labels are whole numbers, save it as "
        "labels.astype(\"i4\")",
        name);
  CHECK(a->rank == 1, ERR_INPUT,
        "'%s' has %d dimensions: labels are one number for each row, save one column", name,
        a->rank);
  CHECK(a->shape[0] == n, ERR_INPUT,
        "'%s' has %lld labels, '%s' has %lld rows: give the labels of these rows", name,
        (long long)a->shape[0], rows, (long long)n);
  return OK;
}

static int array_read(const struct h5_array *a, const char *name, gidx n, struct arena *arena,
                      gidx **labels)
{
  TRY(arena_alloc(arena, labels, n, sizeof **labels));
  TRY(h5_array_read(a, 0, n, TYPE_I64, *labels));
  for (gidx i = 0; i < n; i++)
    CHECK((*labels)[i] >= 0, ERR_INPUT,
          "'%s' has the label %lld in row %lld: labels are at least 0, number them from there",
          name, (long long)(*labels)[i], (long long)i);
  for (gidx i = 0; i < n; i++) /* HDF5 converts all larger numbers to this one */
    CHECK((*labels)[i] < INT64_MAX, ERR_INPUT,
          "'%s' has a label of 2^63 - 1 or more in row %lld, which int64 does not tell apart: "
          "number labels from 0",
          name, (long long)i);
  return OK;
}

static int file_read(const char *path, const char *object, const char *name, gidx n,
                     const char *rows, struct arena *arena, gidx **labels)
{
  struct h5_file file = {0};
  struct h5_array a = {0};
  CHECK(input_format_of(path) == INPUT_H5, ERR_INPUT,
        "'%s' is no HDF5 file: give labels as a dataset of an HDF5 file, such as FILE.h5:/token",
        path);
  int status = h5_open(&file, path);
  if (!status) status = h5_array_open(&file, object, &a);
  if (!status) status = array_check(&a, name, n, rows);
  if (!status) status = array_read(&a, name, n, arena, labels);
  h5_array_close(&a);
  h5_close(&file);
  return status;
}

int labels_read(const char *name, gidx n, const char *rows, struct arena *arena, gidx **labels)
{
  const char *object;
  char *path;
  TRY(input_split(name, &standard, &path, &object));
  int status = file_read(path, object, name, n, rows, arena, labels);
  free(path);
  return status;
}
