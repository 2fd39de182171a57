/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0 begins the files; a job is asked to stop by a signal, the time, or a file. */
#include "job/run.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/options_write.h"
#include "base/status.h"
#include "io/companions.h"
#include "io/rows.h"

/* Begin used.in and run.log. */
static int companions_write(const struct run *run, const struct output_place *place, int appends)
{
  FILE *used, *log;
  const char *name;
  TRY(companions_open(place, appends, &used, &log));
  log_attach(log);
  options_write(run->command->options, run->options, used);
  TRY(companions_begin(used, &name));
  if (name) log_info("log     %s, until a result is there", name);
  run->program->log();
  return OK;
}

static int rows_files_check(const struct rows_input *rows)
{
  return rows ? outputs_check_inputs(rows->files, rows->n_files, NULL) : OK;
}

/* text[capacity] <- used.in, in the folder as it was asked for; nothing where that is too long. */
static void used_name(const struct output_place *place, char *text, size_t capacity)
{
  char folder[4096];
  path_folder(place->shown, folder);
  int length = snprintf(text, capacity, "%s%s", folder, strrchr(place->used, '/'));
  if (length >= (int)capacity) text[0] = '\0';
}

static int place_begin(struct run *run, const struct output_place *place,
                       const struct run_inputs *inputs, int appends)
{
  if (run->comm.rank != 0) return OK;
  memcpy(run->summary, place->page, sizeof run->summary);
  memcpy(run->result, place->shown, sizeof run->result);
  used_name(place, run->used, sizeof run->used);
  TRY(outputs_check_inputs(inputs->name, MAX_INPUTS, run->deck));
  TRY(rows_files_check(inputs->rows));
  TRY(rows_files_check(inputs->holdout));
  TRY(companions_write(run, place, appends));
  outputs_warn_leftovers();
  return OK;
}

int run_begin_at(struct run *run, const struct output_place *place, const struct run_inputs *inputs,
                 int appends)
{
  return comm_agree(&run->comm, place_begin(run, place, inputs, appends));
}

static int place_find(const struct run *run, const struct output_options *output, const char *name,
                      struct output_place *place)
{
  CHECK(output->output, ERR_USAGE, "'--output' is missing: a folder, or a file that ends in .h5");
  return run->comm.rank ? OK : output_place(place, output->output, name, output->force);
}

int run_begin(struct run *run, const struct output_options *output, const char *name,
              const struct run_inputs *inputs, struct output_place *place)
{
  TRY(comm_agree(&run->comm, place_find(run, output, name, place)));
  return run_begin_at(run, place, inputs, 0);
}

/* file[capacity] <- the file beside `shown` that asks a job to stop. */
static void stop_file(const char *shown, char *file, size_t capacity)
{
  char folder[4096];
  path_folder(shown, folder);
  snprintf(file, capacity, "%s/STOP", folder);
}

enum { BY_SIGNAL = 1, BY_FILE = 2 };

uint64_t run_wish_asked(const struct run *run, const char *shown)
{
  char file[4096 + 8];
  uint64_t asked = stop_signal() ? BY_SIGNAL : 0;
  if (run->comm.rank) return asked;
  stop_file(shown, file, sizeof file);
  return asked | (access(file, F_OK) ? 0 : BY_FILE);
}

uint64_t run_stop_asked(const struct run *run, const char *shown)
{
  if (run->max_seconds > 0 && log_seconds() >= run->max_seconds) stop_ask("--max-seconds");
  return run_wish_asked(run, shown);
}

enum { MAX_TYPED = 400 }; /* bytes of a name */

/* text[capacity] <- what goes on from here when it is typed; nothing where the name is too long for
 * a line, or has characters that a shell may not leave alone. */
static void command_again(const struct run *run, char *text, size_t capacity)
{
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "/._-+=,:@%";
  size_t length = strspn(run->used, plain);
  text[0] = '\0';
  if (!length || run->used[length] || length > MAX_TYPED) return;
  snprintf(text, capacity, ", as by: sagitta %s %.*s --resume", run->command->name, MAX_TYPED,
           run->used);
}

void run_stopped(struct run *run, const char *shown, uint64_t asked)
{
  char file[4096 + 8], again[512];
  run->stopped = 1;
  if (run->comm.rank) return;
  stop_file(shown, file, sizeof file);
  command_again(run, again, sizeof again);
  if (asked & BY_FILE)
    log_notice("stopped by '%s': remove it, and with --resume the job goes on%s", file, again);
  else
    log_notice("stopped by %s: with --resume the job goes on%s", stop_why(), again);
}

int run_safe_point(struct run *run, const char *shown, int *stop)
{
  uint64_t asked = run_stop_asked(run, shown);
  TRY(comm_or(&run->comm, &asked, 1));
  *stop = asked != 0;
  if (asked) run_stopped(run, shown, asked);
  return OK;
}
