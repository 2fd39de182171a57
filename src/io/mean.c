/* SPDX-License-Identifier: BSD-3-Clause
 * The mean is read in float64, as it is stored, so that a mean beyond the range of float32 is
 * found. */
#include "io/mean.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/num.h"
#include "base/status.h"
#include "io/check.h"

static const struct object_row object_rows[] = {
    {"/mean", TYPE_F64, "P", 0, "subtracted from rows before anything else"},
};
const struct object_table mean_objects = {object_rows, LENGTH(object_rows)};

int mean_read(const struct h5_file *f, gidx p, real **mean, gidx *length)
{
  struct h5_array a;
  TRY(h5_array_open(f, "/mean", &a));
  int is_real = a.type == TYPE_F64 || a.type == TYPE_F32;
  int fits = a.rank == 1 && is_real && (p < 0 || a.shape[0] == p);
  *length = a.shape[0];
  if (fits) *mean = malloc((size_t)*length * sizeof **mean + 1);
  int status = *mean ? h5_array_read(&a, 0, *length, TYPE_F64, *mean) : OK;
  h5_array_close(&a);
  CHECK(fits || p >= 0, ERR_INPUT, "'/mean' of '%s' is not a vector of float64" ANEW, f->path);
  CHECK(fits, ERR_INPUT, "'/mean' of '%s' is not a vector of %lld float64" ANEW, f->path,
        (long long)p);
  CHECK(*mean, ERR_MEMORY, "cannot allocate %lld bytes", (long long)*length * 8);
  TRY(status);
  return OK;
}

/* Rows are float32, so their mean cannot exceed the range of float32. */
static int is_in_range(real x)
{
  return fabs(x) <= FLT_MAX;
}

int mean_values_check(const real *mean, gidx p, const char *file)
{
  for (gidx c = 0; mean && c < p; c++)
    CHECK(is_in_range(mean[c]), ERR_INPUT,
          "column %lld of the mean of '%s' is %g: that is no mean of rows of float32" ANEW,
          (long long)c, file, mean[c]);
  return OK;
}

int mean_check(const struct verify *v)
{
  enum { PIECE = 4096 };
  real values[PIECE];
  struct h5_array a;
  int status = h5_array_open(v->file, "/mean", &a);
  gidx p = status == OK && a.rank == 1 ? a.shape[0] : 0;
  for (gidx first = 0; first < p && status == OK; first += PIECE) {
    gidx n = imin(PIECE, p - first);
    status = h5_array_read(&a, first, n, TYPE_F64, values);
    for (gidx i = 0; i < n && status == OK; i++)
      if (!is_in_range(values[i]))
        status =
            status_fail(ERR_INPUT, __FILE__, __LINE__,
                        "column %lld of '/mean' is %g: that is no mean of rows of float32" ANEW,
                        (long long)(first + i), values[i]);
  }
  h5_array_close(&a);
  TRY(status);
  check_note(v, "mean      all values are finite");
  return OK;
}
