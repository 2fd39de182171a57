/* SPDX-License-Identifier: BSD-3-Clause
 * These functions read attributes of /run.  For journals, record.c reads the last record. */
#include "io/writer.h"

#include <math.h>
#include <stdio.h>

#include "base/num.h"
#include "base/status.h"
#include "io/h5/h5.h"
#include "io/record.h"

/* out[capacity] <- a text of /run, if there is one. */
static void writer_read(const struct h5_file *f, const char *name, char *out, int capacity)
{
  int there, status = h5_attribute_exists(f, "/run", name, &there);
  if (!status && there) status = h5_read_text(f, "/run", name, out, capacity);
  if (status) status_clear();
}

/* A file without the attribute `numerics` was written before the attribute existed; its number is
 * 1. */
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
       "'%s' was written by Sagitta %s, revision %s, whose results differ in bits (numerics %s, "
       "here %d): %s",
       f->path, version, revision, number, NUMERICS, advice);
}

int numerics_check(const char *path, const char *advice)
{
  struct h5_file f = {0};
  TRY(h5_open(&f, path));
  return h5_close_after(&f, writer_check(&f, advice));
}

static int unnamed_fail(const struct h5_file *f)
{
  char version[64] = "of no known version";
  writer_read(f, "version", version, sizeof version);
  FAIL(ERR_INPUT,
       "'%s' was written by Sagitta %s, format %lld, and does not say which job it is of: begin "
       "again, with --force and not --resume",
       f->path, version, (long long)f->version);
}

static int text_take(const struct h5_file *f, char **text)
{
  static const char advice[] =
      "resume with that version, or begin again, with --force and not --resume";
  int there;
  TRY(writer_check(f, advice));
  TRY(h5_attribute_exists(f, "/run", "identity", &there));
  return there ? h5_read_text_any(f, "/run", "identity", text) : unnamed_fail(f);
}

int writer_identity(const char *path, char **text)
{
  struct h5_file f;
  *text = NULL;
  if (journal_is(path)) return record_identity(path, text, NULL);
  TRY(h5_open(&f, path));
  return h5_close_after(&f, text_take(&f, text));
}
