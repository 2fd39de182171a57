/* SPDX-License-Identifier: BSD-3-Clause
 * One fit, from command line to report.  cmd_fit.c opens it, fit_files.c publishes its sweeps, and
 * fit_job.c reports it in the log and in run.json.
 *
 * Floor: cli.  Functions are for rank 0 alone; not collective. */
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
  struct fit_task asked; /* options that the task takes unchanged; j->task is complete */
  const char *rows, *capture, *holdout, *codes, *update, *minibatch, *top_s_text, *labels, *find,
      *rates;
  idx top_s, encode_s, cosine_limit, seeds; /* top_s 0: auto, until it is chosen */
  idx encode_wanted;                        /* four times top_s if encode_s was not given; else 0 */
  int uncentered, resume, detectors, dry_run;
  real save_seconds, max_norm, l0;
};

/* struct run says why it is on the heap. */
struct fit_job {
  struct run *run;
  const struct fit_options *o;
  struct rows_input rows, holdout;
  struct captured captured; /* with --capture */
  struct outliers outliers; /* with --max-norm */
  struct fit_task task;
  struct fit_parts parts;
  gidx fitted;                /* rows */
  struct fit_options settled; /* the options, with the values that were left open */
  struct fit_sink sink;
  struct fit_result result;
  struct fit_files files;
  int has_sweep;                /* a sweep is published, or about to be */
  int has_ended;                /* all rows are encoded, too */
  struct phase written;         /* FIT_WRITE when the job last waited for a checkpoint */
  double begun, seconds;        /* begun: when the job began; seconds: since then, for run.json */
  struct encode_files supports; /* supports.h5: the codes of all rows */
  struct arena arena;
  real *mean; /* [p]; NULL: not centred */
  struct fit_line best;
  struct atom_array atoms; /* the best ones */
  struct atom_source source;
  struct encode_task encode;
  struct encode_result encoded;
  struct candidate candidate[CHOICE_MOST]; /* for --top-s auto */
  int candidates, chosen;
  gidx *labels;           /* [n] of --labels; NULL: none */
  struct fit_extra extra; /* what dictionary.h5 gets at the end */
  struct detect_result detected;
  struct seeds_record seeds; /* of other seeds; wanted is one less than --seeds, 0: none */
  struct stability stable;   /* what they say; stable.seeds 0: nothing */
  float *other;              /* [k][p] the atoms of another seed */
  real *mean_of_other;       /* [p] the mean of that fit */
  real held_out_explained;   /* with --encode-s atoms per row; NaN: not computed */
};

/* The option's word for an update, what the log says of it, and which one a word means. */
const char *fit_update_name(enum fit_update update);
const char *fit_update_says(enum fit_update update);
enum fit_update fit_update_of(const char *name);

/* Print the plan of --dry-run: how the work is split, and the memory and disk that the whole job
 * needs, and how long it takes; as lines, or with --json as an object.  j->encode is the encoding
 * at the end, with its grid chosen. */
int fit_plan_show(const struct fit_job *j, const struct fit_forecast *forecast);

/* Log a sweep, with the pace and the most that the rest can take. */
void fit_line_log(const struct fit_job *j, const struct fit_sweep *sweep);

/* Keep what the report says of a point, whose best sweep this is. */
void fit_point_note(struct fit_job *j, const struct fit_point *at, gidx best);

/* Print the report at the end, when all rows are encoded. */
void fit_report(struct fit_job *j);

/* Add the figures of a fit, `of`, to run.json (job/summary.h) after each sweep. */
int fit_summary_json(const void *of, struct json *j);

#endif
