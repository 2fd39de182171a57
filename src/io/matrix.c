/* SPDX-License-Identifier: BSD-3-Clause
 * rows.h5 and dictionary.h5. */
#include "io/outputs.h"

#include <string.h>

#include "base/status.h"
#include "io/schema.h"

enum { SLACK_BYTES = 4 << 20 };

static int matrix_create(struct matrix_file *f, const char *path, const char *kind, int rank,
                         const gidx *shape)
{
  memset(f, 0, sizeof *f);
  double bytes = 4.0 * (1 + 0x1p-10);
  for (int i = 0; i < rank; i++) bytes *= (double)shape[i];
  CHECK(bytes < 0x1p60, ERR_CREATE, "'%s' would have %.3g bytes", path, bytes);
  TRY(result_create(&f->result, path, (gidx)bytes + SLACK_BYTES));
  TRY(h5_attribute_text(&f->result.h5, "/", "kind", kind));
  const char *object = strcmp(kind, "rows") == 0 ? "/rows" : "/atoms";
  TRY(object_create(&f->result.h5, object, rank, shape, 0, &f->array));
  return OK;
}

int rows_create(struct matrix_file *f, const char *path, gidx n, idx p)
{
  gidx shape[2] = {n, p};
  TRY(matrix_create(f, path, "rows", 2, shape));
  return OK;
}

int dictionary_create(struct matrix_file *f, const char *path, idx k, idx d, idx p)
{
  gidx atoms[2] = {k, p}, frames[3] = {k, d, p};
  TRY(matrix_create(f, path, "dictionary", d > 1 ? 3 : 2, d > 1 ? frames : atoms));
  return OK;
}

int matrix_write(struct matrix_file *f, gidx first, gidx count, const float *values)
{
  TRY(h5_array_write(&f->array, first, count, values));
  return OK;
}

int matrix_add(struct matrix_file *f, const char *object, enum h5_type type, int rank,
               const gidx *shape, const void *values)
{
  struct h5_array a;
  int status = h5_array_create(&f->result.h5, object, type, rank, shape, &a);
  if (status == OK) status = h5_array_write(&a, 0, shape[0], values);
  int closed = h5_array_close(&a);
  return status ? status : closed;
}

int matrix_finish(struct matrix_file *f, const struct run_fact *facts, int n_facts)
{
  TRY(h5_array_close(&f->array));
  TRY(result_publish(&f->result, facts, n_facts));
  return OK;
}

void matrix_close(struct matrix_file *f)
{
  h5_array_close(&f->array);
  h5_close(&f->result.h5);
}
