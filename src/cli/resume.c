/* SPDX-License-Identifier: BSD-3-Clause
 * A place that is claimed with --resume may have a file, which is looked at at once. */
#include "cli/resume.h"

#include <stdio.h>

#include "base/log.h"
#include "base/status.h"
#include "job/numerics.h"
#include "io/h5/h5.h"
#include "io/inputs.h"

int resume_refuse(const char *path)
{
  FAIL(ERR_CREATE,
       "'%s' is there already, of a job that stopped: add --resume to go on with it, or --force to "
       "begin again",
       path);
}

static int part_look(const struct h5_file *f, const char *kind, gidx whole, int *is_left)
{
  gidx rows = 0;
  TRY(h5_attribute_is(f, "/", "kind", kind, is_left));
  if (*is_left && whole) TRY(h5_read_long(f, "/part", "rows", &rows));
  *is_left = *is_left && (!whole || rows < whole);
  return OK;
}

int resume_is_left(const char *path, const char *kind, gidx whole)
{
  struct h5_file f = {0};
  int is = 0, status = input_is_there(path) ? h5_open(&f, path) : ERR_IO;
  if (!status) status = part_look(&f, kind, whole, &is);
  h5_close(&f);
  status_clear();
  return !status && is;
}

int resume_place(const struct resume *r, const char *output, const char *name,
                 struct output_place *place, int *there)
{
  char reason[2048];
  CHECK(output, ERR_USAGE, "'--output' is missing: a folder, or a file that ends in .h5");
  TRY(output_place(place, output, name, 1));
  if (!r->force && !r->resume) {
    if (resume_is_left(place->file, r->kind, r->whole)) return resume_refuse(place->file);
    TRY(output_check_free(place->file, 0));
  }
  *there = r->resume && input_is_there(place->file);
  if (!*there) return OK;
  int status = r->open(r->self, place->file);
  if (!status) status = numerics_part(place->file);
  snprintf(reason, sizeof reason, "%s", status_message());
  if (status) status_clear();
  CHECK(!status, status == ERR_INPUT ? ERR_CREATE : status,
        "cannot go on with '%s': %s; with --force, and not --resume, it is replaced", place->shown,
        reason);
  return OK;
}

int resume_begin(struct run *run, const struct output_place *place, const struct run_inputs *inputs,
                 gidx done, gidx all, const char *unit)
{
  TRY(run_begin_at(run, place, inputs, done > 0));
  if (run->comm.rank == 0 && done)
    log_info("resume  after %lld of %lld %s of '%s'", (long long)done, (long long)all, unit,
             place->shown);
  return OK;
}
