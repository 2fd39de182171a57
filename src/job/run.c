/* SPDX-License-Identifier: BSD-3-Clause
 * Ranks compare their options; then rank 0 begins the files. */
#include "job/run.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/options_config.h"
#include "base/options_write.h"
#include "base/status.h"
#include "comm/lines.h"
#include "io/sidecars.h"
#include "io/rows.h"

/* Rank 0 reads the deck, and every rank applies it.  Collective; returns this rank's status. */
static int config_broadcast(struct run *run, const char *name)
{
  static char text[MAX_DECK];
  struct comm *c = &run->comm;
  size_t bytes = 0;
  TRY(comm_agree(c, c->rank ? OK : config_read(name, text, &bytes)));
  gidx length = (gidx)bytes;
  TRY(comm_broadcast(c, &length, 1, sizeof length));
  TRY(comm_broadcast(c, text, length, 1));
  return options_config(name, text, (size_t)length);
}

/* text[COMM_LINES_MOST] <- the options that must be the same. */
static int options_text(const struct run *run, char *text)
{
  FILE *memory = fmemopen(text, COMM_LINES_MOST, "w");
  CHECK(memory, ERR_MEMORY, "cannot allocate a text of options");
  options_lines(run->command->options, run->options, OPTION_PER_RANK, memory);
  int full = fclose(memory) != 0;
  text[COMM_LINES_MOST - 1] = '\0';
  CHECK(!full && strlen(text) < COMM_LINES_MOST - 1, ERR_USAGE,
        "the options have more than %d bytes", COMM_LINES_MOST);
  return OK;
}

int options_agree(struct run *run, const char **arguments, int status)
{
  static char text[COMM_LINES_MOST];
  const char *deck = options_config_of(run->command->options, arguments);
  snprintf(text, sizeof text, "program = %s %s %s\ncommand = %s\n%s%s%s", run->program->name,
           run->program->version, run->program->revision, run->command->name, deck ? "deck = " : "",
           deck ? deck : "", deck ? "\n" : "");
  TRY(comm_agree(&run->comm, status));
  TRY(comm_lines_agree(&run->comm, text));
  if (deck) status = config_broadcast(run, deck);
  if (!status) status = options_text(run, text);
  TRY(comm_agree(&run->comm, status));
  return comm_lines_agree(&run->comm, text);
}

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

static int rows_files_check(const struct rows_input *rows)
{
  return rows ? outputs_check_inputs(rows->files, rows->n_files, NULL) : OK;
}

/* text[capacity] <- used.in, in the folder as it was given; "" if that is too long. */
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
  TRY(rows_files_check(inputs->rows));
  TRY(rows_files_check(inputs->holdout));
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
