/* SPDX-License-Identifier: BSD-3-Clause
 * Commands: one table row each, and what they share.
 *
 * Floor: cli.  Commands join jobs, which know no files, with the io floor. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "device/device.h"
#include "job/facts.h"
#include "job/run.h"

/* Options that several commands share: a struct and its table each. */
struct general_options { /* all commands; at the begin of their options structs */
  int quiet, verbose, json;
  idx progress_fd; /* 0 once it is open: used.in has none */
  real deadline;
};
struct compute_options {
  idx tile, block, threads;
  const char *cpu_variant, *filter, *device, *kernels, *grid;
};
extern const struct option_row general_rows[], compute_rows[];
extern const struct option_row output_rows[], folder_rows[]; /* a folder or a file; a folder */
enum { GENERAL_ROWS = 5, OUTPUT_ROWS = 2, COMPUTE_ROWS = 8 };

/* The rows of --progress-fd (base/events.h) and --deadline, whose values are at offsets. */
#define PROGRESS_FD_OPTION(offset)                                                                 \
  {                                                                                                \
    "progress-fd", OPTION_INT, offset, NULL, 2, 1 << 20, NULL, "NUMBER",                           \
        "for programs: write progress, warnings and the log to this open file descriptor, as "     \
        "JSON lines; a job that can be resumed stops where it is a pipe whose reader has ended",   \
        .effect = OPTION_RUN                                                                       \
  }

#define DEADLINE_OPTION(offset)                                                                    \
  {                                                                                                \
    "deadline", OPTION_REAL, offset, "300", 0.1, 1e6, NULL, "SECONDS",                             \
        "give up (exit 74) when opening, reading or writing a block takes longer, or (exit 76) "   \
        "when a rank shows no sign of life for so long",                                           \
        .effect = OPTION_RUN                                                                       \
  }

/* The row of --rows, whose value is at an offset. */
#define ROWS_OPTION(offset)                                                                        \
  {                                                                                                \
    "rows", OPTION_TEXTS, offset, NULL, 0, 0, NULL, "FILE[:/PATH]",                                \
        "activation rows (N, P): HDF5 float16, bfloat16, float32, float64 "                        \
        "(default path: /rows), .npy or .safetensors; of several files, one after "                \
        "another: " ROWS_SHARDS,                                                                   \
        .effect = OPTION_BITS, .flags = OPTION_INPUT                                               \
  }
#define ROWS_SHARDS "'acts/*.h5' in quotes, @LIST with a name a line, or the option again"

#define THREADS_HELP                                                                               \
  "threads in a rank; 0: OMP_NUM_THREADS or SLURM_CPUS_PER_TASK if set, else the rank's share of " \
  "the cores that it may use"

/* The row of --filter, whose value is at an offset. */
#define FILTER_OPTION(offset)                                                                      \
  {                                                                                                \
    "filter", OPTION_CHOICE, offset, "auto", 0, 0, "auto|on|off", NULL,                            \
        "route by way of the certified filter: coarse products prove which atoms cannot matter, "  \
        "exact scores decide; auto: where that is faster",                                         \
        .effect = OPTION_RUN                                                                       \
  }

/* The rows of --device and --kernels, whose values are at offsets. */
#define DEVICE_OPTION(offset)                                                                      \
  {                                                                                                \
    "device", OPTION_CHOICE, offset, "auto", 0, 0, "auto|cpu|cuda", NULL,                          \
        "what computes; auto takes a GPU for jobs that are large enough to gain, cuda ends with "  \
        "exit code 69 where there is none",                                                        \
        .effect = OPTION_RUN                                                                       \
  }
#define KERNELS_OPTION(offset)                                                                     \
  {                                                                                                \
    "kernels", OPTION_TEXT, offset, NULL, 0, 0, NULL, "FOLDER",                                    \
        "take GPU kernels from here instead of those built in, for work on them",                  \
        .effect = OPTION_RUN, .flags = OPTION_INPUT                                                \
  }

/* The rows of --resume and --max-seconds, whose values are at offsets, of a job whose safe points
 * are the ends of `what`. */
#define RESUME_OPTION(offset)                                                                      \
  {                                                                                                \
    "resume", OPTION_FLAG, offset, "no", 0, 1, NULL, NULL,                                         \
        "go on from what a run with the same inputs and options left at --output that was "        \
        "stopped: the bytes are those of one run; without one, begin anew; where it is complete, " \
        "leave it and end with 0",                                                                 \
        .effect = OPTION_RUN                                                                       \
  }
#define MAX_SECONDS_OPTION(offset, what)                                                           \
  {                                                                                                \
    "max-seconds", OPTION_REAL, offset, "0", 0, 1e9, NULL, "SECONDS",                              \
        "stop at the end of " what " when so many have passed since the start, as when a signal "  \
        "asks for it: --resume goes on; 0: no limit",                                              \
        .effect = OPTION_EXTENT                                                                    \
  }

/* Rows of massive norm that a fit leaves out (seed/outliers.h). */
#define MAX_NORM_OPTION(offset)                                                                    \
  {                                                                                                \
    "max-norm", OPTION_REAL, offset, "0", 0, 1e30, NULL, "MULTIPLE",                               \
        "leave out rows whose norm, about the medians of the columns, is so many times that of "   \
        "the median row or more, as first tokens have: neither atoms nor what judges them see "    \
        "these; 8 suits most models; 0: none are",                                                 \
        .effect = OPTION_BITS                                                                      \
  }

/* What a command that can stop says of signals in its --help. */
#define STOP_SIGNALS                                                                               \
  "SIGUSR1 or SIGUSR2 once it runs, to mpirun or to the program, SIGTERM or the first SIGINT to "  \
  "the program (mpirun itself kills the job at these, and so at Ctrl-C)"

/* The row of --cpu-variant, whose value is at an offset. */
#define CPU_VARIANT_OPTION(offset, help)                                                           \
  {                                                                                                \
    "cpu-variant", OPTION_CHOICE, offset, "auto", 0, 0, CPU_VARIANTS, NULL, help,                  \
        .effect = OPTION_RUN, .flags = OPTION_PER_RANK                                             \
  }

#define COMMAND(name) extern const struct command command_##name;
#include "cli/commands.def"
#undef COMMAND

#endif
