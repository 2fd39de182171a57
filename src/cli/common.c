/* SPDX-License-Identifier: BSD-3-Clause
 * Option tables that commands share, the place of results, and provenance. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/options_write.h"
#include "base/status.h"
#include "base/stop.h"
#include "base/watchdog.h"
#include "cli/about.h"
#include "cli/command.h"
#include "job/numerics.h"
#include "cli/revision.h"
#include "cli/run_page.h"
#include "config.h"
#include "io/companions.h"
#include "io/rows.h"

const struct option_row general_rows[GENERAL_ROWS] = {
    {"quiet", OPTION_FLAG, offsetof(struct general_options, quiet), "no", 0, 1, NULL, NULL,
     "warnings and errors only", .effect = OPTION_RUN},
    {"verbose", OPTION_FLAG, offsetof(struct general_options, verbose), "no", 0, 1, NULL, NULL,
     "details too, and where an error came from", .effect = OPTION_RUN},
    {"json", OPTION_FLAG, offsetof(struct general_options, json), "no", 0, 1, NULL, NULL,
     "print what the command finds as one JSON object, and nothing else, to standard output",
     .effect = OPTION_RUN},
    {"deadline", OPTION_REAL, offsetof(struct general_options, deadline), "300", 0.1, 1e6, NULL,
     "SECONDS",
     "give up (exit 74) when opening, reading or writing a block takes longer, or (exit 76) when a "
     "rank shows no sign of life for so long",
     .effect = OPTION_RUN},
};

#define FORCE_OPTION                                                                               \
  {                                                                                                \
    "force", OPTION_FLAG, offsetof(struct output_options, force), "no", 0, 1, NULL, NULL,          \
        "replace results that are there", .effect = OPTION_RUN                                     \
  }
const struct option_row output_rows[OUTPUT_ROWS] = {
    {"output", OPTION_TEXT, offsetof(struct output_options, output), NULL, 0, 0, NULL, "PLACE",
     "a folder for the results (created), or one file when it ends in .h5", .effect = OPTION_RUN,
     .flags = OPTION_OUTPUT},
    FORCE_OPTION,
};
const struct option_row folder_rows[OUTPUT_ROWS] = {
    {"output", OPTION_TEXT, offsetof(struct output_options, output), NULL, 0, 0, NULL, "FOLDER",
     "a folder for the results (created)", .effect = OPTION_RUN, .flags = OPTION_OUTPUT},
    FORCE_OPTION,
};

const struct option_row compute_rows[COMPUTE_ROWS] = {
    {"tile", OPTION_INT, offsetof(struct compute_options, tile), "0", 0, 1 << 24, NULL, "ATOMS",
     "atoms in a tile; tiles go round-robin to the ranks of a group; 0: what gives them equal "
     "work",
     .effect = OPTION_RUN},
    {"block", OPTION_INT, offsetof(struct compute_options, block), "0", 0, 1 << 20, NULL, "ROWS",
     "rows that a group of ranks handles at a time, multiples of 4096 where there are several; 0: "
     "as many as pay, up to 4096, or 16384 where a GPU may be used",
     .effect = OPTION_RUN},
    {"grid", OPTION_TEXT, offsetof(struct compute_options, grid), "auto", 0, 0, NULL, "RxA",
     "ranks form R groups of A: a group shares out the atoms, and the groups the rows; auto: as "
     "many groups as memory lets hold the dictionary, and as rows are enough for",
     .effect = OPTION_RUN},
    {"threads", OPTION_INT, offsetof(struct compute_options, threads), "0", 0, 4096, NULL, "COUNT",
     THREADS_HELP, .effect = OPTION_RUN, .flags = OPTION_PER_RANK},
    CPU_VARIANT_OPTION(offsetof(struct compute_options, cpu_variant),
                       "instruction set of the CPU's loops"),
    FILTER_OPTION(offsetof(struct compute_options, filter)),
    DEVICE_OPTION(offsetof(struct compute_options, device)),
    KERNELS_OPTION(offsetof(struct compute_options, kernels)),
};

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
  about_log();
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
  memcpy(run->page, place->page, sizeof run->page);
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

static void words_join(const struct run *run, char *text, size_t capacity)
{
  size_t used = (size_t)snprintf(text, capacity, "sagitta");
  for (int i = 0; i < run->argc && used < capacity; i++)
    used += (size_t)snprintf(text + used, capacity - used, " %s", run->argv[i]);
}

static void options_join(const struct run *run, char *text, size_t capacity)
{
  FILE *memory = fmemopen(text, capacity, "w");
  text[0] = '\0';
  if (!memory) return;
  options_write(run->command->options, run->options, memory);
  fclose(memory);
  text[capacity - 1] = '\0';
}

/* file[capacity] <- the file beside `shown` that asks a job to stop. */
static void stop_file(const char *shown, char *file, size_t capacity)
{
  char folder[4096];
  path_folder(shown, folder);
  snprintf(file, capacity, "%s/STOP", folder);
}

enum { BY_SIGNAL = 1, BY_FILE = 2 };

static uint64_t run_wish_asked(const struct run *run, const char *shown)
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

static uint64_t run_asked(void *self)
{
  const struct run_stops *s = self;
  return run_stop_asked(s->run, s->shown);
}

static void run_ends(void *self, uint64_t asked)
{
  const struct run_stops *s = self;
  run_stopped(s->run, s->shown, asked);
}

static uint64_t wish_asked(void *self)
{
  const struct run_stops *s = self;
  return run_wish_asked(s->run, s->shown);
}

struct stops run_wishes(struct run_stops *stops, struct run *run, const char *shown)
{
  *stops = (struct run_stops){run, shown};
  return (struct stops){wish_asked, run_ends, stops};
}

struct stops run_stops(struct run_stops *stops, struct run *run, const char *shown)
{
  *stops = (struct run_stops){run, shown};
  return (struct stops){run_asked, run_ends, stops};
}

int run_safe_point(struct run *run, const char *shown, int *stop)
{
  uint64_t asked = run_stop_asked(run, shown);
  TRY(comm_or(&run->comm, &asked, 1));
  *stop = asked != 0;
  if (asked) run_stopped(run, shown, asked);
  return OK;
}

int run_facts(const struct run *run, const char *device, int threads, struct run_fact *facts)
{
  static char words[8192], options[8192], host[256], ended[32];
  if (device) run_page_device(device);
  words_join(run, words, sizeof words);
  options_join(run, options, sizeof options);
  gethostname(host, sizeof host - 1);
  time_t now = time(NULL);
  strftime(ended, sizeof ended, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
  const struct run_fact all[] = {
      {"version", PACKAGE_VERSION, 0},
      {"revision", REVISION, 0},
      {"numerics", NULL, NUMERICS},
      {"command", words, 0},
      {"options", options, 0},
      {"host", host, 0},
      {"ranks", NULL, run->comm.size},
      {"threads", NULL, threads},
      {"device", device, 0},
      {"started", run->started, 0},
      {"ended", ended, 0},
      {"identity", run->identity.text, 0},
  };
  int count = LENGTH(all) - (run->identity.text == NULL);
  memcpy(facts, all, (size_t)count * sizeof *all);
  return count;
}
