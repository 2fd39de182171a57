/* SPDX-License-Identifier: BSD-3-Clause
 * The commands of sagitta, and the options that several commands share.
 *
 * Floor: cli.  Jobs know no files: a command opens the files by the io floor and runs the job. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "base/options.h"
#include "device/device.h"
#include "job/summary.h"
#include "job/run.h"

/* Options that several commands share.  Some have a struct and a table of their own.  Each
 * macro NAME_OPTION below is a single row, whose value is at an offset in the command's struct. */
struct general_options { /* first member of the options struct of each command */
  int quiet, verbose, json;
  idx progress_fd; /* --progress-fd; 0 after it was opened, so that used.in leaves it out */
  real deadline;
};
struct compute_options {
  idx tile, block, threads;
  const char *cpu_variant, *filter, *device, *kernels, *grid;
};
extern const struct option_row general_rows[], compute_rows[];
/* --output and --force.  With output_rows --output is a folder or a file, with folder_rows it is a
 * folder. */
extern const struct option_row output_rows[], folder_rows[];
/* ERR_USAGE: --output is missing, or ends in .h5 and so names a file. */
int output_folder_check(const struct output_options *output);
enum { GENERAL_ROWS = 5, OUTPUT_ROWS = 2, COMPUTE_ROWS = 8 };

/* Options of `verify --rows` and sagitta-bench, which find codes in one process. */
struct own_codes_options {
  const char *device, *cpu_variant, *kernels;
  idx threads;
};
enum { OWN_CODES_ROWS = 4 };
extern const struct option_row own_codes_rows[OWN_CODES_ROWS];
/* Returns the kind, threads, variant and kernels of a device for these options; p and d are 1. */
struct device_options own_codes_device(const struct own_codes_options *o);

/* The rows of --progress-fd (base/events.h) and --deadline, whose values are at offsets. */
#define PROGRESS_FD_OPTION(offset)                                                                 \
  {                                                                                                \
    "progress-fd", OPTION_INT, offset, NULL, 2, 1 << 20, NULL, "NUMBER",                           \
        "for programs: write progress, warnings and the log to this open file descriptor, as "     \
        "JSON lines; if it is a pipe and its reader exits, a job that can be resumed stops",       \
        .effect = OPTION_RUN                                                                       \
  }

#define DEADLINE_OPTION(offset)                                                                    \
  {                                                                                                \
    "deadline", OPTION_REAL, offset, "300", 0.1, 1e6, NULL, "SECONDS",                             \
        "end with exit code 74 when one operation on a file takes longer than SECONDS, and with "  \
        "76 when a rank shows no sign of life for SECONDS",                                        \
        .effect = OPTION_RUN                                                                       \
  }

/* The row of --rows, whose value is at an offset. */
#define ROWS_OPTION(offset)                                                                        \
  {                                                                                                \
    "rows", OPTION_TEXTS, offset, NULL, 0, 0, NULL, "FILE[:/PATH]",                                \
        "activation rows (N, P): HDF5 float16, bfloat16, float32, float64 (default path: "         \
        "/rows), .npy or .safetensors; " ROWS_SHARDS,                                              \
        .effect = OPTION_BITS, .flags = OPTION_INPUT                                               \
  }
#define ROWS_SHARDS                                                                                \
  "for several files, joined in order, give 'acts/*.h5' in quotes, @LIST (a file with one "        \
  "name per line), or the option again"

#define THREADS_HELP                                                                               \
  "threads per rank; 0: OMP_NUM_THREADS, or in a job step SLURM_CPUS_PER_TASK, if set, "           \
  "otherwise the rank's share of the cores that it may use"

/* The row of --filter, whose value is at an offset. */
#define FILTER_OPTION(offset)                                                                      \
  {                                                                                                \
    "filter", OPTION_CHOICE, offset, "auto", 0, 0, "auto|on|off", NULL,                            \
        "find the largest scores with the certified filter: coarse products prove which atoms "    \
        "cannot have them, and exact scores decide between the others; auto: if this is faster",   \
        .effect = OPTION_RUN                                                                       \
  }

/* The rows of --device and --kernels, whose values are at offsets. */
#define DEVICE_OPTION(offset)                                                                      \
  {                                                                                                \
    "device", OPTION_CHOICE, offset, "auto", 0, 0, "auto|cpu|cuda", NULL,                          \
        "where to compute; auto: on a GPU if the job is large enough to gain from it; cuda: "      \
        "on a GPU, exit code 69 if there is none",                                                 \
        .effect = OPTION_RUN                                                                       \
  }
#define KERNELS_OPTION(offset)                                                                     \
  {                                                                                                \
    "kernels", OPTION_TEXT, offset, NULL, 0, 0, NULL, "FOLDER",                                    \
        "for developing kernels: load GPU kernels from this folder instead of the built-in "       \
        "ones",                                                                                    \
        .effect = OPTION_RUN, .flags = OPTION_INPUT                                                \
  }

/* The rows of --resume and --max-seconds, whose values are at offsets.  what: the unit of work
 * after which the job can stop, such as "a block". */
#define RESUME_OPTION(offset)                                                                      \
  {                                                                                                \
    "resume", OPTION_FLAG, offset, "no", 0, 1, NULL, NULL,                                         \
        "continue the earlier run at --output with the same inputs. You may change only "          \
        "options that change no bit of the result, such as --threads. A resumed run gives the "    \
        "bytes of a run without a stop. Without an earlier run the job starts anew; if the "       \
        "earlier run is complete, it ends with exit code 0",                                       \
        .effect = OPTION_RUN                                                                       \
  }
#define MAX_SECONDS_OPTION(offset, what)                                                           \
  {                                                                                                \
    "max-seconds", OPTION_REAL, offset, "0", 0, 1e9, NULL, "SECONDS",                              \
        "stop at the end of " what                                                                 \
        ", once SECONDS have passed since the start; --resume continues; 0: "                      \
        "no limit",                                                                                \
        .effect = OPTION_EXTENT                                                                    \
  }

/* The row of --max-norm, which leaves rows of massive norm out of a fit (seed/outliers.h). */
#define MAX_NORM_OPTION(offset)                                                                    \
  {                                                                                                \
    "max-norm", OPTION_REAL, offset, "0", 0, 1e30, NULL, "MULTIPLE",                               \
        "leave out rows of massive norm, such as first tokens: rows whose norm, after the "        \
        "column medians are subtracted, is at least MULTIPLE times the median norm. They are "     \
        "neither fitted nor held out; 8 suits most models; 0: no row is left out",                 \
        .effect = OPTION_BITS                                                                      \
  }

/* The part of --help about signals, for commands that can be stopped, in the middle of a
 * paragraph. */
#define STOP_SIGNALS                                                                               \
  "or send a signal: SIGUSR1 or SIGUSR2 to mpirun or to the program, or SIGTERM or one SIGINT to " \
  "the program.  At SIGTERM, SIGINT or Ctrl-C mpirun itself kills the job.  "

/* The row of --cpu-variant, whose value is at an offset. */
#define CPU_VARIANT_OPTION(offset, help)                                                           \
  {                                                                                                \
    "cpu-variant", OPTION_CHOICE, offset, "auto", 0, 0, CPU_VARIANTS, NULL, help,                  \
        .effect = OPTION_RUN, .flags = OPTION_PER_RANK                                             \
  }

/* The rows of --threads, --cosine-limit and --dry-run, whose values are at offsets. */
#define THREADS_OPTION(offset)                                                                     \
  {                                                                                                \
    "threads", OPTION_INT, offset, "0", 0, 4096, NULL, "COUNT", THREADS_HELP,                      \
        .effect = OPTION_RUN, .flags = OPTION_PER_RANK                                             \
  }
#define COSINE_LIMIT_OPTION(offset)                                                                \
  {                                                                                                \
    "cosine-limit", OPTION_INT, offset, "65536", 0, 1 << 30, NULL, "ATOMS",                        \
        "compute max_decoder_cosine, the largest |cosine| of two atoms, for dictionaries of "      \
        "at most ATOMS atoms",                                                                     \
        .effect = OPTION_BITS                                                                      \
  }
#define DRY_RUN_OPTION(offset)                                                                     \
  {                                                                                                \
    "dry-run", OPTION_FLAG, offset, "no", 0, 1, NULL, NULL,                                        \
        "print the memory and disk that the whole job needs and how the rows are split, then "     \
        "end; --output is not touched",                                                            \
        .effect = OPTION_RUN                                                                       \
  }

/* The row of --rates, whose value is at an offset. */
#define RATES_OPTION(offset)                                                                       \
  {                                                                                                \
    "rates", OPTION_TEXT, offset, NULL, 0, 0, NULL, "FILE",                                        \
        "with --dry-run: also print how long the job takes by the rates in FILE, which "           \
        "`sagitta-bench rates --json` printed on the same machine with the same number of ranks",  \
        .effect = OPTION_RUN, .flags = OPTION_INPUT                                                \
  }

/* The rows of --holdout and --uncentered of fit and train. */
#define HOLDOUT_OPTION(offset)                                                                     \
  {                                                                                                \
    "holdout", OPTION_TEXTS, offset, NULL, 0, 0, NULL, "FILE[:/PATH]",                             \
        "file of held-out rows: no atom is fitted to them, and atoms are judged by them; "         \
        "without it some of --rows are held out; several files as with --rows",                    \
        .effect = OPTION_BITS, .flags = OPTION_INPUT                                               \
  }
#define UNCENTERED_OPTION(offset)                                                                  \
  {                                                                                                \
    "uncentered", OPTION_FLAG, offset, "no", 0, 1, NULL, NULL,                                     \
        "do not subtract the column means from the rows", .effect = OPTION_BITS                    \
  }

/* The rows of --dictionary, --normalize, --top-s and --rho of encode and serve, and of --block of
 * harvest and attribute. */
#define DICTIONARY_OPTION(offset)                                                                  \
  {                                                                                                \
    "dictionary", OPTION_TEXT, offset, NULL, 0, 0, NULL, "FILE[:/PATH]",                           \
        "atoms of unit norm (K, P), or atoms of d orthonormal vectors each (K, d, P) (default "    \
        "path: /atoms); a /mean in the file is subtracted from the rows",                          \
        .effect = OPTION_BITS, .flags = OPTION_INPUT                                               \
  }
#define NORMALIZE_OPTION(offset)                                                                   \
  {                                                                                                \
    "normalize", OPTION_FLAG, offset, "no", 0, 1, NULL, NULL,                                      \
        "scale the atoms to unit norm; without this, atoms of other norms are refused",            \
        .effect = OPTION_BITS                                                                      \
  }
#define TOP_S_OPTION(offset)                                                                       \
  {                                                                                                \
    "top-s", OPTION_INT, offset, NULL, 1, MAX_TOP_S, NULL, "ATOMS",                                \
        "atoms per row (default: the number in the dictionary, which `fit` takes from its "        \
        "--encode-s; 32 if it has none)",                                                          \
        .effect = OPTION_BITS                                                                      \
  }
#define RHO_OPTION(offset)                                                                         \
  {                                                                                                \
    "rho", OPTION_REAL, offset, "0", 0, 1e30, NULL, "PENALTY",                                     \
        "ridge penalty: the codes c of the atoms d of a row x minimize 1/2 |x - sum c d|^2 + 1/2 " \
        "rho |c|^2",                                                                               \
        .effect = OPTION_BITS                                                                      \
  }
#define BLOCK_OPTION(offset)                                                                       \
  {                                                                                                \
    "block", OPTION_INT, offset, "0", 0, 1 << 20, NULL, "ROWS",                                    \
        "number of rows that the ranks take at a time; 0: chosen for speed", .effect = OPTION_RUN  \
  }

/* The row of --save-seconds of fit and refit, whose value is at an offset.  For the help text:
 * `also` says what else is saved, `zero` what 0 means. */
#define SAVE_SECONDS_OPTION(offset, also, zero)                                                    \
  {                                                                                                \
    "save-seconds", OPTION_REAL, offset, "300", 0, 1e9, NULL, "SECONDS",                           \
        "save an unfinished sweep" also " every SECONDS and on a stop request. A sweep is also "   \
        "saved as soon as its atoms have moved, if choosing atoms and codes for the rows may "     \
        "take a tenth of SECONDS or longer. A killed job loses what came after the last save; "    \
        "0: " zero ". On a GPU a "                                                                 \
        "sweep that moves atoms one by one is saved only at its end",                              \
        .effect = OPTION_RUN                                                                       \
  }

#define COMMAND(name) extern const struct command command_##name;
#include "cli/commands.def"
#undef COMMAND

#endif
