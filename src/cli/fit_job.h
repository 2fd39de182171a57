/* SPDX-License-Identifier: BSD-3-Clause
 * One fit, from the command line to the report.  cmd_fit.c opens it, fit_files.c publishes its
 * sweeps, and fit_job.c reports it in the log and in run.json.
 *
 * Floor: cli.  Functions are for rank 0 alone, unless a comment says otherwise.  They are not
 * collective. */
#ifndef CLI_FIT_JOB_H
#define CLI_FIT_JOB_H

#include "cli/captured.h"
#include "cli/command.h"
#include "fit/forecast.h"
#include "encoding/encode_files.h"
#include "cli/fit_files.h"
#include "fit/parts.h"
#include "encode/encode.h"
#include "fit/fit.h"
#include "io/rows.h"
#include "look/detect.h"
#include "model/choice.h"
#include "model/stability.h"
#include "seed/outliers.h"

struct fit_options {
  struct general_options general;
  struct output_options output;
  struct fit_task asked; /* options for the task; the complete task is j->task */
  const char *rows, *capture, *holdout, *codes, *update, *minibatch, *top_s_text, *labels, *find,
      *rates;
  idx top_s, encode_s, cosine_limit, seeds; /* top_s 0: auto, not chosen yet */
  idx encode_wanted; /* 4 * top_s if --find stable set encode_s, otherwise 0 */
  int uncentered, resume, detectors, dry_run;
  real save_seconds, max_norm, l0;
};

/* The state of the job.  struct run (job/run.h) says why it is on the heap. */
struct fit_job {
  struct run *run;
  const struct fit_options *o;
  struct rows_input rows, holdout;
  struct captured captured; /* with --capture */
  struct outliers outliers; /* with --max-norm */
  struct fit_task task;
  struct fit_parts parts;
  gidx fitted;                /* number of fitted rows */
  struct fit_options settled; /* the options, with the minibatch that was settled */
  struct fit_sink sink;
  struct fit_result result;
  struct fit_files files;
  int has_sweep;                /* a sweep is published, or being published */
  int has_ended;                /* all rows are encoded, and all files written */
  struct phase written;         /* phase FIT_WRITE, as it was after the last wait */
  double begun, seconds;        /* begun: start of the job; seconds: since then, for run.json */
  struct encode_files supports; /* supports.h5: the codes of all rows */
  struct arena arena;
  real *mean; /* [p]; NULL: not centred */
  struct fit_line best;
  struct atom_array atoms; /* of the best sweep */
  struct atom_source source;
  struct encode_task encode;
  struct encode_result encoded;
  struct candidate candidate[CHOICE_MOST]; /* for --top-s auto */
  int candidates, chosen;
  gidx *labels;           /* [n] of --labels; NULL: none */
  struct fit_extra extra; /* added to dictionary.h5 at the end */
  struct detect_result detected;
  struct seeds_record seeds; /* of other seeds; .wanted is --seeds less 1 */
  struct stability stable;   /* by the other seeds; .seeds 0: there are none */
  float *other;              /* [k][p] the atoms of another seed */
  real *mean_of_other;       /* [p] the mean of that fit */
  real held_out_explained;   /* explained variance of held-out rows with --encode-s; NaN: none */
};

/* fit_update_name(): the word of --update for an update.  fit_update_says(): a description for the
 * log.  fit_update_of(): the update that a word of --update means.  For any rank. */
const char *fit_update_name(enum fit_update update);
const char *fit_update_says(enum fit_update update);
enum fit_update fit_update_of(const char *name);

/* Print the plan of --dry-run, as lines, or with --json as an object: how the work is split, the
 * memory and disk that the whole job needs, and with --rates how long it takes.  j->encode is the
 * encoding at the end, with its grid chosen. */
int fit_plan_show(const struct fit_job *j, const struct fit_forecast *forecast);

/* Log a sweep, with the rows per second, and the most seconds that further sweeps and the encoding
 * of all rows take. */
void fit_line_log(const struct fit_job *j, const struct fit_sweep *sweep);

/* Set j->best to the line of sweep `best` of this point, and j->mean to its mean.  On every
 * rank. */
void fit_point_note(struct fit_job *j, const struct fit_point *at, gidx best);

/* Log the report at the end, when all rows are encoded. */
void fit_report(struct fit_job *j);

/* Add the figures of a fit, `of`, to run.json (job/summary.h), after each checkpoint and at the
 * end. */
int fit_summary_json(const void *of, struct json *j);

#endif
