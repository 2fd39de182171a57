/* SPDX-License-Identifier: BSD-3-Clause
 * One training, from command line to report.  cmd_train.c opens it, train_files.c publishes its
 * points, and train_job.c reports it in the log and in run.json.
 *
 * Floor: cli.  Functions are for rank 0 alone; not collective. */
#ifndef CLI_TRAIN_JOB_H
#define CLI_TRAIN_JOB_H

#include "cli/command.h"
#include "cli/train_files.h"
#include "io/dictionary.h"
#include "io/encoder.h"
#include "io/rows.h"
#include "model/identity.h"
#include "seed/outliers.h"
#include "train/train.h"

/* struct run says why it is on the heap. */
struct train_options;
struct train_job {
  struct run *run;
  const struct train_options *o; /* defined in cmd_train.c */
  struct rows_input rows, holdout;
  struct outliers outliers; /* with --max-norm */
  struct dictionary_input dictionary;
  struct atom_source given; /* its atoms[k][p] */
  float *atoms;
  struct atom_array array;       /* the same atoms */
  struct stored_encoder encoder; /* of the given dictionary, if takes_encoder */
  int has_encoder, takes_encoder;
  uint64_t atoms_hash; /* with the mean, and with the encoder if it is taken */
  struct train_task task;
  char nested[256]; /* the widths in canonical form */
  struct train_sink sink;
  struct train_result result;
  struct train_files files;
  struct identity inputs;
  struct train_line *lines; /* [lines_max] */
  gidx count, lines_max;
  gidx step;     /* the last step that was reached */
  int has_ended; /* no more steps will be taken */
  gidx shown;    /* lines that were logged */
  gidx polls;    /* how often a stop was polled: once before the first step, and in each step */
  real stepped;  /* time of the first step, in seconds */
  double begun;
  real max_seconds; /* --max-seconds */
  const char *precision;
  struct arena arena;
};

/* Print the plan of --dry-run: how the work is split, and the memory and disk that it needs; as
 * lines, or with --json as an object. */
int train_plan_show(struct train_job *j, const char *rates);

/* Log the lines that were not logged.  On every rank. */
void train_lines_log(struct train_job *j, const struct train_point *point);
/* Keep for run.json what a point says.  At the end, warn if nothing was learned: with steps that
 * are too long, training may end with finite values, but explain less than no atoms.  On every
 * rank. */
int train_point_note(struct train_job *j, const struct train_point *point, enum train_reason why);
/* Print the report at the end. */
void train_report(const struct train_job *j);

/* Add the figures of a training, `of`, to run.json, at the end or while it runs. */
int train_summary_json(const void *of, struct json *own);

#endif
