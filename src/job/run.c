/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0 begins the files. */
#include "job/run.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/options_write.h"
#include "base/status.h"
#include "io/sidecars.h"
#include "io/rows.h"

/* Begin used.in and run.log. */
static int sidecars_write(const struct run *run, const struct output_path *place, int appends)
{
  FILE *used, *log;
  const char *name;
  TRY(sidecars_open(place, appends, &used, &log));
  log_attach(log);
  options_write(run->command->options, run->options, used);
  TRY(sidecars_begin(used, &name));
  if (name) log_info("log     %s, until a result is there", name);
  run->program->log();
  return OK;
}

/* text[capacity] <- the path of used.in, in the folder as it was given; "" if it is too long. */
static void used_name(const struct output_path *place, char *text, size_t capacity)
{
  char folder[4096];
  path_folder(place->shown, folder);
  int length = snprintf(text, capacity, "%s%s", folder, strrchr(place->used, '/'));
  if (length >= (int)capacity) text[0] = '\0';
}

static int output_begin(struct run *run, const struct output_path *place,
                        const struct run_inputs *inputs, int appends)
{
  memcpy(run->summary, place->page, sizeof run->summary);
  memcpy(run->result, place->shown, sizeof run->result);
  used_name(place, run->used, sizeof run->used);
  TRY(outputs_check_inputs(inputs->name, MAX_INPUTS, run->deck));
  const struct rows_input *rows[] = {inputs->rows, inputs->holdout};
  for (int i = 0; i < LENGTH(rows); i++)
    if (rows[i]) TRY(outputs_check_inputs(rows[i]->files, rows[i]->n_files, NULL));
  TRY(sidecars_write(run, place, appends));
  outputs_warn_leftovers();
  return OK;
}

int run_begin_at(struct run *run, const struct output_path *place, const struct run_inputs *inputs,
                 int appends)
{
  return comm_agree(&run->comm, run->comm.rank ? OK : output_begin(run, place, inputs, appends));
}

int run_begin(struct run *run, const struct output_options *output, const char *name,
              const struct run_inputs *inputs, struct output_path *place)
{
  int rank = run->comm.rank;
  TRY(comm_agree(&run->comm, rank ? OK : output_path(place, output->output, name, output->force)));
  return run_begin_at(run, place, inputs, 0);
}
