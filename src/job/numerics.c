/* SPDX-License-Identifier: BSD-3-Clause
 * What /run says of who wrote a file; where it has no number, that was before there were any. */
#include "job/numerics.h"

#include <math.h>
#include <stdio.h>

#include "base/num.h"
#include "base/status.h"
#include "io/h5/h5.h"

/* out[capacity] <- a text of /run. */
static void writer_read(const struct h5_file *f, const char *name, char *out, int capacity)
{
  int there, status = h5_attribute_exists(f, "/run", name, &there);
  if (!status && there) status = h5_read_text(f, "/run", name, out, capacity);
  if (status) status_clear();
}

static int writer_check(const struct h5_file *f, const char *advice)
{
  char version[64] = "unknown", revision[64] = "unknown";
  char number[32] = "1";
  real numerics = 1;
  int there;
  TRY(h5_attribute_exists(f, "/run", "numerics", &there));
  if (there && h5_read_number(f, "/run", "numerics", &numerics)) {
    status_clear();
    numerics = nan_canonical();
  }
  if (numerics == NUMERICS) return OK;
  if (isnan(numerics))
    snprintf(number, sizeof number, "no number");
  else
    snprintf(number, sizeof number, "%g", numerics);
  writer_read(f, "version", version, sizeof version);
  writer_read(f, "revision", revision, sizeof revision);
  FAIL(ERR_INPUT,
       "'%s' was written by a Sagitta that has other bits, version %s, revision %s (numerics %s, "
       "here %d): %s",
       f->path, version, revision, number, NUMERICS, advice);
}

int numerics_check(const char *path, const char *advice)
{
  struct h5_file f = {0};
  int status = h5_open(&f, path);
  if (!status) status = writer_check(&f, advice);
  h5_close(&f);
  return status;
}
