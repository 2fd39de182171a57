/* SPDX-License-Identifier: BSD-3-Clause
 * A step: which rows it takes, and what becomes of them.
 *
 * Floor: serve; included by src/serve only.  Of the main thread, but for step_gather() and
 * step_fill().  While somebody watches one step is in work; else up to MAX_STEPS - 1 are: one that
 * ends, two in the lane, and one whose rows are copied. */
#ifndef SERVE_STEP_H
#define SERVE_STEP_H

#include "serve/feed.h"
#include "serve/mixing.h"
#include "serve/ranks.h"
#include "serve/recorder.h"
#include "serve/serve.h"

enum { MAX_STEPS = 4 };

/* Some rows of a request, or of a piece of a file, in a step. */
struct step_part {
  struct request *request; /* NULL: a piece's */
  struct piece *piece;
  gidx at, n; /* rows of the step */
  gidx first; /* of the request or piece */
};

struct step {
  gidx number, rows;
  int slot;                   /* of the lane */
  struct request_queue taken; /* live requests */
  struct step_part *parts;    /* [n_parts] */
  gidx n_parts, part_capacity;
  struct recorded_step recorded;
};

struct serve {
  const struct serve_task *task;
  struct admission_knobs knobs; /* with the target that was found */
  struct ranks ranks;
  struct front front;
  gidx number;          /* of the next step */
  struct worker files;  /* the thread of serve_task.files */
  struct worker copier; /* copies rows and results while the lane computes */
  struct recorder recorder;
  struct mixing mixing;      /* rows of tokens */
  uint64_t dictionary;       /* its hash */
  int is_closing, is_behind; /* the second: requests wait behind others of their streams */
  uint64_t closes;           /* ns: when what still waits is given up */
  /* Steps in work are oldest, oldest + 1, ... modulo MAX_STEPS; prepared: the newest has its rows
   * in its slot, and has not begun. */
  struct step steps[MAX_STEPS];
  int oldest, in_work, is_prepared;
  struct step *filled, *gathered; /* jobs of the copier; NULL: none */
  struct support_block results;   /* of `filled` */
  struct request_queue finished;  /* answered next */
  /* Of choosing. */
  gidx *sizes, *admitted;     /* rows of live requests; of jobs that are admitted */
  struct admission_job *jobs; /* as are their requests */
  struct request **requests;  /* NULL: the file's */
  gidx size_capacity, admitted_capacity, job_capacity, request_capacity;
};

/* One pass of the lane, with a new step where there is one.  *is_idle <- nothing waited. */
int step_run(struct serve *s, int *is_idle);

/* *ns <- how long a step of a piece's rows takes, with copies of rows and results; no other is in
 * work. */
int step_time(struct serve *s, struct piece *piece, uint64_t *ns);

#endif
