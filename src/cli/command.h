/* SPDX-License-Identifier: BSD-3-Clause
 * Commands: one table row each, and what they share.
 *
 * Floor: cli.  Commands join jobs, which know no files, with the io floor. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "base/cores.h"
#include "base/options.h"
#include "base/stop.h"
#include "base/types.h"
#include "comm/comm.h"
#include "device/device.h"
#include "io/outputs.h"
#include "io/place.h"
#include "job/identity.h"

struct run; /* below */

struct command {
  const char *name, *summary;
  const struct option_set *options;
  size_t options_bytes; /* of the command's options struct */
  int parallel;         /* uses MPI */
  /* Do the job.  options points to the command's options struct; arguments are followed by NULL. */
  int (*run)(struct run *run, const void *options, const char **arguments);
};

/* What main hands to a command.
 *
 * A command keeps the state of its job in one struct on the heap (struct_alloc() of base/memory.h),
 * and so do the jobs that it calls.  The struct is freed when all went well, and left alone when a
 * failure ends the job: a worker thread that is at work while another rank fails may use it until
 * main has ended the program.  So such state is never on the stack of a function that returns an
 * error. */
struct run {
  const struct command *command;
  const void *options;
  int argc;
  char **argv;
  const char *deck;    /* NULL: none */
  struct comm comm;    /* size 1 and not open for commands that are not parallel */
  struct cores *cores; /* [comm.size] of every rank's machine; NULL when not parallel; owned */
  gidx *threads;       /* [comm.size] of every rank, after threads_report(); owned */
  struct identity_text identity; /* of a job that can be resumed; what it publishes has it */
  char started[32];              /* UTC, ISO 8601 */
  char title[48];                /* "sagitta encode" */
  int unread;                    /* nobody reads what was written to stdout */
  int stopped;                   /* the job was asked to stop, and did at a safe point */
  real max_seconds;  /* after so many since the start safe points stop it; 0: no limit */
  char page[4096];   /* rank 0, after run_begin_at(): where run.json is to be (run_page.h) */
  char result[4096]; /* and the result, as it was asked for */
  char used[4096];   /* and used.in, as it is typed */
  int has_page;      /* the command writes it itself */
};

/* Options that several commands share: a struct and its table each. */
struct general_options { /* all commands; at the begin of their options structs */
  int quiet, verbose, json;
  real deadline;
};
struct output_options {
  const char *output;
  int force;
};
struct compute_options {
  idx tile, block, threads;
  const char *cpu_variant, *filter, *device, *kernels, *grid;
};
extern const struct option_row general_rows[], compute_rows[];
extern const struct option_row output_rows[], folder_rows[]; /* a folder or a file; a folder */
enum { GENERAL_ROWS = 4, OUTPUT_ROWS = 2, COMPUTE_ROWS = 8 };

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

/* The files that a run reads, each FILE or FILE:/PATH, or NULL. */
enum { MAX_INPUTS = 5 };
struct rows_input;
struct run_inputs {
  const char *name[MAX_INPUTS];
  const struct rows_input *rows, *holdout; /* their files too; NULL: none */
};
/* Begin a result called `name`: rank 0 accepts the place or refuses it, checks that no output of
 * the run is one of its inputs, and begins used.in and run.log.  place is filled on rank 0.
 * Collective. */
int run_begin(struct run *run, const struct output_options *output, const char *name,
              const struct run_inputs *inputs, struct output_place *place);
/* The same in a place that rank 0 has; appends: to the log of the run that this one resumes.
 * Collective. */
int run_begin_at(struct run *run, const struct output_place *place, const struct run_inputs *inputs,
                 int appends);

/* A safe point of a job whose results so far are published: is it asked to stop, by a signal to any
 * rank (base/stop.h), by the time, or by a file called STOP beside `shown`, which rank 0 has?  Then
 * the log says so, run->stopped is set, and main ends with ERR_STOPPED.  Collective. */
int run_safe_point(struct run *run, const char *shown, int *stop);
/* The same in two steps, between which ranks tell each other: what asks this rank, as bits; and the
 * bits of all, if there are any.  Not collective. */
uint64_t run_stop_asked(const struct run *run, const char *shown);
void run_stopped(struct run *run, const char *shown, uint64_t asked);
/* The same for a job to call.  What stops points to is borrowed. */
struct run_stops {
  struct run *run;
  const char *shown;
};
struct stops run_stops(struct run_stops *stops, struct run *run, const char *shown);
/* Signals and the file alone, where a limit of time would let no run get further. */
struct stops run_wishes(struct run_stops *stops, struct run *run, const char *shown);

/* Fill the facts of /run: version, revision, numerics, command, options, host, ranks, threads,
 * device, start and end.  Returns how many there are; their texts are valid until the next call. */
enum { MAX_FACTS = 64 };
int run_facts(const struct run *run, const char *device, int threads, struct run_fact *facts);

extern const struct command command_assemble, command_attribute, command_bench, command_color,
    command_compare, command_detect, command_diff, command_encode, command_evaluate, command_export,
    command_fit, command_harvest, command_import, command_inspect, command_merge, command_pack,
    command_refit, command_route, command_seed, command_solve, command_synth, command_terminal,
    command_top, command_train, command_verify;

#endif
