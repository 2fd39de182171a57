/* SPDX-License-Identifier: BSD-3-Clause
 * A step: which rows it takes, and what becomes of them.
 *
 * Floor: serve; included by src/serve only.  Of the main thread. */
#ifndef SERVE_STEP_H
#define SERVE_STEP_H

#include "encode/lane.h"
#include "serve/feed.h"
#include "serve/recorder.h"
#include "serve/serve.h"

/* Some rows of a request, or of a piece of a file, in the step. */
struct step_part {
  struct request *request; /* NULL: a piece's */
  struct piece *piece;
  gidx at, n; /* rows of the step */
};

struct serve {
  const struct serve_task *task;
  struct admission_knobs knobs; /* with the target that was found */
  struct lane *lane;
  struct front front;
  gidx number;         /* of the next step */
  struct worker files; /* the thread of serve_task.files */
  struct recorder recorder;
  uint64_t dictionary; /* its hash */
  int is_closing;
  uint64_t closes; /* ns: when what still waits is given up */
  /* Of the step. */
  struct request_queue taken;    /* live requests */
  struct request_queue finished; /* answered when it ends */
  struct step_part *parts;       /* [n_parts] */
  gidx n_parts, part_capacity, rows;
  gidx *sizes, *admitted;     /* rows of live requests; of jobs that are admitted */
  struct admission_job *jobs; /* as are their requests */
  struct request **requests;  /* NULL: the file's */
  gidx size_capacity, admitted_capacity, job_capacity, request_capacity;
};

/* Plan and do a step.  *is_idle <- nothing waited for it. */
int step_run(struct serve *s, int *is_idle);

#endif
