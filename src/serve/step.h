/* SPDX-License-Identifier: BSD-3-Clause
 * A step of the server: its rows, and the results that go back to requests and files.
 *
 * Floor: serve; included by src/serve only.  Used by the main thread; with one rank, step_gather()
 * and step_fill() may run in the copier.  While live clients wait, or the server is closing, a step
 * begins only when no other is in work.  Otherwise up to MAX_STEPS are in work: one that ends, two
 * in the lane, and one whose rows are copied. */
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
  struct request *request; /* NULL: the rows are from a piece */
  struct piece *piece;
  gidx at, n; /* rows at .. at + n - 1 of the step */
  gidx first; /* the first of these rows in the request or piece */
};

struct step {
  gidx number, rows;
  int slot;                   /* the lane's slot for the rows */
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
  gidx number;          /* number of the next step */
  struct worker files;  /* the thread of serve_task.files */
  struct worker copier; /* copies rows and results while the lane computes */
  struct recorder recorder;
  struct mixing mixing;      /* makes rows from tokens */
  uint64_t dictionary;       /* hash of the dictionary */
  int is_closing, is_behind; /* is_behind: front.held has requests */
  uint64_t closes;           /* ns: when the closing server gives up requests that wait */
  /* Steps in work are oldest, oldest + 1, ... modulo MAX_STEPS.  is_prepared: the rows of the
   * newest step are in its slot, but the lane has not begun it. */
  struct step steps[MAX_STEPS];
  int oldest, in_work, is_prepared;
  struct step *filled, *gathered; /* steps for copy_run(); NULL: none */
  struct support_block results;   /* results of the step that ends */
  struct request_queue finished;  /* requests to answer next */
  /* Used to choose the rows of a step. */
  gidx *sizes, *admitted;     /* rows of each live request; admitted rows of each job */
  struct admission_job *jobs; /* bulk requests and the file that the next step may take */
  struct request **requests;  /* request of each job; NULL: the job is a file */
  gidx size_capacity, admitted_capacity, job_capacity, request_capacity;
};

/* Make one pass of the lane, and begin a new step if rows wait.  *is_idle <- 1: no step was in
 * work, and no rows waited. */
int step_run(struct serve *s, int *is_idle);

/* *ns <- the time of a step with the rows of a piece, with the copies of rows and results.  No
 * other step may be in work. */
int step_time(struct serve *s, struct piece *piece, uint64_t *ns);

#endif
