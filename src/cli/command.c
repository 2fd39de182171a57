/* SPDX-License-Identifier: BSD-3-Clause
 * Option tables that commands share. */
#include "cli/command.h"

#include <string.h>

#include "base/cores.h"
#include "base/status.h"

const struct option_row general_rows[GENERAL_ROWS] = {
    {"quiet", OPTION_FLAG, offsetof(struct general_options, quiet), "no", 0, 1, NULL, NULL,
     "print warnings and errors only", .effect = OPTION_RUN},
    {"verbose", OPTION_FLAG, offsetof(struct general_options, verbose), "no", 0, 1, NULL, NULL,
     "print details too, and where an error came from", .effect = OPTION_RUN},
    {"json", OPTION_FLAG, offsetof(struct general_options, json), "no", 0, 1, NULL, NULL,
     "print what the command finds as one JSON object, and nothing else, to standard output",
     .effect = OPTION_RUN},
    PROGRESS_FD_OPTION(offsetof(struct general_options, progress_fd)),
    DEADLINE_OPTION(offsetof(struct general_options, deadline)),
};

#define FORCE_OPTION                                                                               \
  {                                                                                                \
    "force", OPTION_FLAG, offsetof(struct output_options, force), "no", 0, 1, NULL, NULL,          \
        "replace existing results", .effect = OPTION_RUN                                           \
  }
const struct option_row output_rows[OUTPUT_ROWS] = {
    {"output", OPTION_TEXT, offsetof(struct output_options, output), NULL, 0, 0, NULL, "PLACE",
     "a folder for the results (created), or one file if PLACE ends in .h5", .effect = OPTION_RUN,
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
     "number of atoms in a tile; tiles go round-robin to the ranks of a group; 0: a number that "
     "gives ranks equal work",
     .effect = OPTION_RUN},
    {"block", OPTION_INT, offsetof(struct compute_options, block), "0", 0, 1 << 20, NULL, "ROWS",
     "number of rows that a group of ranks takes at a time, a multiple of 4096 if there are "
     "several groups; 0: the job chooses it, at most 4096, or 16384 if a GPU may be used",
     .effect = OPTION_RUN},
    {"grid", OPTION_TEXT, offsetof(struct compute_options, grid), "auto", 0, 0, NULL, "RxA",
     "R groups of A ranks: the groups divide the rows, and the ranks of a group divide the "
     "atoms; auto: the largest R with which the dictionary fits in memory and every group has "
     "enough rows",
     .effect = OPTION_RUN},
    THREADS_OPTION(offsetof(struct compute_options, threads)),
    CPU_VARIANT_OPTION(offsetof(struct compute_options, cpu_variant),
                       "instruction set of CPU loops"),
    FILTER_OPTION(offsetof(struct compute_options, filter)),
    DEVICE_OPTION(offsetof(struct compute_options, device)),
    KERNELS_OPTION(offsetof(struct compute_options, kernels)),
};

#define AT(member) offsetof(struct own_codes_options, member)
const struct option_row own_codes_rows[OWN_CODES_ROWS] = {
    {"threads", OPTION_INT, AT(threads), "0", 0, 4096, NULL, "COUNT",
     "threads; 0: as for a job of one rank", .effect = OPTION_RUN, .flags = OPTION_PER_RANK},
    CPU_VARIANT_OPTION(AT(cpu_variant), "instruction set of CPU loops"),
    {"device", OPTION_CHOICE, AT(device), "cpu", 0, 0, "cpu|cuda", NULL, "the device that computes",
     .effect = OPTION_RUN},
    KERNELS_OPTION(AT(kernels)),
};

struct device_options own_codes_device(const struct own_codes_options *o)
{
  const char *asked;
  struct cores own;
  idx threads = o->threads ? o->threads : cores_asked(&asked);
  cores_find(&own);
  if (!threads) threads = cores_partition(&own, 1, 0).threads;
  return (struct device_options){.p = 1,
                                 .d = 1,
                                 .threads = threads,
                                 .variant = o->cpu_variant,
                                 .kind = o->device,
                                 .kernels = o->kernels};
}

int output_folder_check(const struct output_options *output)
{
  const char *folder = output->output;
  size_t length = folder ? strlen(folder) : 0;
  CHECK(length, ERR_USAGE, "'--output' is missing: give a folder");
  CHECK(length < 3 || strcmp(folder + length - 3, ".h5") != 0, ERR_USAGE,
        "'--output' is '%s', but the results are a folder: give one", folder);
  return OK;
}
