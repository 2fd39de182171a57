/* SPDX-License-Identifier: BSD-3-Clause
 * The size of the array is estimated from above, so that a full disk is noticed before any work. */
#include "io/matrix.h"

#include <string.h>

#include "base/status.h"

enum { SLACK_BYTES = 4 << 20 };

static double bytes_of(double values)
{
  return 4.0 * (1 + 0x1p-10) * values + SLACK_BYTES;
}

gidx matrix_bytes(gidx values)
{
  return (gidx)bytes_of((double)values);
}

static int values_write(void *self, gidx first, gidx count, const float *values)
{
  return matrix_output_write(self, first, count, values);
}

int matrix_output_create(struct matrix_output *f, const char *path, const struct file_kind *kind,
                         const char *object, int rank, const gidx *shape)
{
  *f = (struct matrix_output){.sink = {f, values_write}};
  double values = 1;
  for (int i = 0; i < rank; i++) values *= (double)shape[i];
  double bytes = bytes_of(values);
  CHECK(bytes < 0x1p60, ERR_CREATE,
        "'%s' would have %.3g bytes: lower the number of rows or columns", path, bytes);
  TRY(result_create(&f->result, path, kind, (gidx)bytes));
  TRY(object_create(&f->result.h5, object, rank, shape, 0, &f->array));
  return OK;
}

int matrix_output_write(struct matrix_output *f, gidx first, gidx count, const float *values)
{
  TRY(h5_array_write(&f->array, first, count, values));
  return OK;
}

int matrix_output_finish(struct matrix_output *f, const struct run_fact *facts, int n_facts)
{
  TRY(h5_array_close(&f->array));
  TRY(result_publish(&f->result, facts, n_facts));
  return OK;
}

void matrix_output_close(struct matrix_output *f)
{
  h5_array_close(&f->array);
  h5_close(&f->result.h5);
}
