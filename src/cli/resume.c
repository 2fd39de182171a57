/* SPDX-License-Identifier: BSD-3-Clause
 * A place that is claimed with --resume may have a file, which is looked at at once. */
#include "cli/resume.h"

#include <stdio.h>

#include "base/log.h"
#include "base/status.h"
#include "io/inputs.h"

int resume_place(const struct resume *r, const char *output, const char *name,
                 struct output_place *place, int *there)
{
  char reason[2048];
  CHECK(output, ERR_USAGE, "'--output' is missing: a folder, or a file that ends in .h5");
  TRY(output_place(place, output, name, r->force || r->resume));
  *there = r->resume && input_is_there(place->file);
  if (!*there) return OK;
  int status = r->open(r->self, place->file);
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
