/* SPDX-License-Identifier: BSD-3-Clause
 * The inputs that assemble, refit and terminal share: rows, dictionary and supports; and the check
 * that they belong together.
 *
 * Floor: cli. */
#ifndef CLI_FIT_INPUTS_H
#define CLI_FIT_INPUTS_H

#include "base/options.h"
#include "cli/command.h"
#include "cli/report.h"
#include "io/dictionary.h"
#include "io/rows.h"
#include "io/supports_input.h"
#include "model/classes.h"
#include "refit/coloring.h"
#include "refit/frames.h"
#include "refit/layout.h"

struct fit_names {
  const char *rows, *dictionary, *supports, *classes; /* classes may be NULL */
};
extern const struct option_row fit_name_rows[];
enum { FIT_NAME_ROWS = 4 };

/* The options --threads and --cpu-variant. */
struct fit_compute {
  idx threads;
  const char *cpu_variant;
};
extern const struct option_row fit_compute_rows[];
/* The row of --share, whose value is at an offset. */
#define SHARE_OPTION(offset)                                                                       \
  {                                                                                                \
    "share", OPTION_CHOICE, offset, "auto", 0, 0, SHARE_CHOICES, NULL,                             \
        "the ranks of a node share one copy of the atoms; auto: if the node allows shared "        \
        "memory; no: every rank has its own copy. The choice changes no bit",                      \
        .effect = OPTION_RUN                                                                       \
  }
enum { FIT_COMPUTE_ROWS = 2 };

struct fit_inputs {
  struct rows_input rows;
  struct dictionary_input dictionary;
  struct supports_input supports;
  struct h5_file classes; /* not open without --classes */
  char classes_file[MAX_NAME];
  const real *mean; /* [p] borrowed; NULL: rows are not centred */
};

/* Open all inputs, and check that they belong together.  ERR_USAGE: an input is missing.
 * ERR_INPUT.  Collective, as rows_input_open() is. */
int fit_inputs_open(struct fit_inputs *in, struct comm *c, const struct fit_names *names);
void fit_inputs_close(struct fit_inputs *in);
/* The input files, for run_begin(). */
struct run_inputs fit_inputs_files(const struct fit_inputs *in);

struct run;
struct refit_task fit_inputs_task(const struct fit_inputs *in, const struct run *run,
                                  const struct fit_compute *compute);

/* Print the lines of --dry-run about rows, atoms, supports, memory and disk, or with --json an
 * object.  bytes_of() returns the memory of a batch of atoms; disk: size of the files in bytes;
 * how_disk: a text after this size.  Rank 0 prints; the same status on every rank. */
struct fit_plan {
  const struct refit_task *task;
  const struct comm *rows; /* the ranks that divide the rows; NULL: all */
  idx directions;
  batch_bytes_of *bytes_of;
  gidx disk;
  const char *how_disk;
  const struct plan_rates *rates; /* NULL: nothing is printed about time; only rank 0 reads it */
  const struct times *times;
};
int fit_plan_print(struct run *run, const struct fit_plan *plan);

/* *classes <- the classes in the file of --classes, after a check against the supports of all
 * ranks.  Without --classes the classes of (N.6) are computed.  Collective. */
int fit_inputs_classes(const struct fit_inputs *in, const struct refit_state *f,
                       const struct color_looker *looker, struct classes *classes);

#endif
