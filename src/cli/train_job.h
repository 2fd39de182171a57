/* SPDX-License-Identifier: BSD-3-Clause
 * One training, from the command line to the report.  cmd_train.c opens it, train_files.c publishes
 * its points, and train_job.c reports it in the log and in run.json.
 *
 * Floor: cli.  Functions are for rank 0 alone, unless a comment says otherwise.  They are not
 * collective. */
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

/* The state of the job.  struct run (job/run.h) says why it is on the heap. */
struct train_options;
struct train_job {
  struct run *run;
  const struct train_options *o; /* defined in cmd_train.c */
  struct rows_input rows, holdout;
  struct outliers outliers;           /* with --max-norm */
  struct dictionary_input dictionary; /* of --start or --fixed-dictionary, if given */
  struct atom_source given;           /* reads its atoms */
  float *atoms;                       /* [k][p] its atoms; NULL: none */
  struct atom_array array;            /* `atoms` with their sizes */
  struct stored_encoder encoder;      /* of that dictionary; used if takes_encoder */
  int has_encoder, takes_encoder;
  uint64_t atoms_hash; /* of atoms and mean, and of the encoder if it is taken */
  struct train_task task;
  char nested[256]; /* --nested in canonical form */
  struct train_sink sink;
  struct train_result result;
  struct train_files files;
  struct identity inputs;
  struct train_line *lines; /* [lines_max] */
  gidx count, lines_max;
  gidx step;     /* the step of the last point that was noted */
  int has_ended; /* no more steps will be taken */
  gidx shown;    /* number of lines that were logged */
  gidx polls;    /* calls of may_stop(): one before the first step, then one in each step */
  real stepped;  /* log_seconds() at the first of these calls */
  double begun;
  real max_seconds; /* --max-seconds */
  const char *precision;
  struct arena arena;
};

/* Print the plan of --dry-run, as lines, or with --json as an object: how the work is split, the
 * memory and disk that it needs, and how long it takes if `rates` is not NULL. */
int train_plan_show(struct train_job *j, const char *rates);

/* Log the lines of the point that were not logged yet.  Call it on every rank; rank 0 logs. */
void train_lines_log(struct train_job *j, const struct train_point *point);
/* Keep the figures of a point for run.json.  At the end, warn if nothing was learned: if steps are
 * too long, training may end with finite values that explain less than no atoms would.  On every
 * rank. */
int train_point_note(struct train_job *j, const struct train_point *point, enum train_reason why);
/* Log the report at the end. */
void train_report(const struct train_job *j);

/* Add the figures of a training, `of`, to run.json, after a checkpoint or at the end. */
int train_summary_json(const void *of, struct json *own);

#endif
