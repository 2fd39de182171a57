/* SPDX-License-Identifier: BSD-3-Clause
 * One training, from command line to report: what cmd_train.c opens, train_files.c takes while the
 * steps go on, and what is said of it in the log and in run.json.
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
  const struct train_options *o; /* of cmd_train.c */
  struct rows_input rows, holdout;
  struct outliers outliers; /* with --max-norm */
  struct dictionary_input dictionary;
  struct atom_source given; /* atoms[k][p] of it */
  float *atoms;
  struct atom_array array;       /* they */
  struct stored_encoder encoder; /* of it, where takes_encoder */
  int has_encoder, takes_encoder;
  uint64_t atoms_hash; /* with the mean, and with the encoder where it is taken */
  struct train_task task;
  char nested[256]; /* its widths, written in one way */
  struct train_sink sink;
  struct train_result result;
  struct train_files files;
  struct identity inputs;
  struct train_line *lines; /* [lines_max] */
  gidx count, lines_max;
  gidx step;     /* that was reached */
  int has_ended; /* no more steps are taken */
  gidx shown;    /* lines that were */
  gidx polls;    /* of what asks to stop: before the first step, and in each */
  real stepped;  /* seconds: the first one */
  double begun;
  real max_seconds; /* of --max-seconds, as the next */
  const char *precision;
  struct arena arena;
};

/* With --dry-run: how the work is split, and the memory and disk that it needs, as lines or, with
 * --json, as facts. */
int train_plan_show(struct train_job *j);

/* The next line that was not shown, with the pace. */
void train_line_log(struct train_job *j, const struct train_point *point);
/* Steps that are too long may end where all is finite, and nothing was learned: a warning. */
void train_outcome_check(const struct train_job *j, const struct train_point *point);
/* At the end. */
void train_report(const struct train_job *j);

/* What a training, `of`, adds to run.json at the end, or while it goes on. */
int train_summary_json(const void *of, struct json *own);

#endif
