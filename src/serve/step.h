/* SPDX-License-Identifier: BSD-3-Clause
 * A step of the server: its rows, and the results that go back to requests and files.
 *
 * Floor: serve; included by src/serve only.  Used by the main thread; step_gather() and step_fill()
 * run in the copier.  While clients wait, one step is in work.  Otherwise up to MAX_STEPS - 1 are:
 * one that ends, two in the lane, and one whose rows are copied. */
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
  struct request *request; /* NULL: the rows are of a piece */
  struct piece *piece;
  gidx at, n; /* rows at .. at + n - 1 of the step */
  gidx first; /* the first of these rows in the request or piece */
};

struct step {
  gidx number, rows;
  int slot;                   /* slot of the lane that has the rows */
  struct request_queue taken; /* live requests with rows in the step */
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
  struct mixing mixing;      /* makes rows of tokens */
  uint64_t dictionary;       /* its hash */
  int is_closing, is_behind; /* is_behind: requests wait for others of their streams */
  uint64_t closes;           /* ns: when requests that still wait are given up */
  /* Steps in work are oldest, oldest + 1, ... modulo MAX_STEPS.  is_prepared: the newest has its
   * rows in its slot, but has not begun. */
  struct step steps[MAX_STEPS];
  int oldest, in_work, is_prepared;
  struct step *filled, *gathered; /* jobs of the copier; NULL: none */
  struct support_block results;   /* of `filled` */
  struct request_queue finished;  /* requests to answer next */
  /* Used to choose the rows of a step. */
  gidx *sizes, *admitted;     /* rows of live requests; rows of jobs that are admitted */
  struct admission_job *jobs; /* jobs for the next step, and their requests */
  struct request **requests;  /* request of each job; NULL: the job is of the file */
  gidx size_capacity, admitted_capacity, job_capacity, request_capacity;
};

/* Make one pass of the lane, with a new step if rows wait.  *is_idle <- 1: no rows waited. */
int step_run(struct serve *s, int *is_idle);

/* *ns <- the time of a step with the rows of a piece, copies of rows and results included.  No
 * other step is in work. */
int step_time(struct serve *s, struct piece *piece, uint64_t *ns);

#endif
