/* SPDX-License-Identifier: BSD-3-Clause
 * Option tables that commands share, and provenance. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/options_write.h"
#include "base/status.h"
#include "cli/command.h"
#include "job/numerics.h"
#include "cli/revision.h"
#include "cli/run_page.h"
#include "config.h"

const struct option_row general_rows[GENERAL_ROWS] = {
    {"quiet", OPTION_FLAG, offsetof(struct general_options, quiet), "no", 0, 1, NULL, NULL,
     "warnings and errors only", .effect = OPTION_RUN},
    {"verbose", OPTION_FLAG, offsetof(struct general_options, verbose), "no", 0, 1, NULL, NULL,
     "details too, and where an error came from", .effect = OPTION_RUN},
    {"json", OPTION_FLAG, offsetof(struct general_options, json), "no", 0, 1, NULL, NULL,
     "print what the command finds as one JSON object, and nothing else, to standard output",
     .effect = OPTION_RUN},
    PROGRESS_FD_OPTION(offsetof(struct general_options, progress_fd)),
    DEADLINE_OPTION(offsetof(struct general_options, deadline)),
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
