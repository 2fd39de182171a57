/* SPDX-License-Identifier: BSD-3-Clause
 * Which rows a step of the live server takes: live requests first, then rows of jobs (L.1 to L.5).
 *
 * Floor: model.  The plan is a pure function of integers: the knobs, the queues and the number of
 * the step.  So every rank, and every reader of the ledger, computes the same plan. */
#ifndef MODEL_ADMISSION_H
#define MODEL_ADMISSION_H

#include <stddef.h>

#include "base/types.h"

enum admission_policy { ADMISSION_OFF, ADMISSION_STATIC, ADMISSION_DYNAMIC };

/* Fixed for the life of a server; numbers of rows, except policy and file_period. */
struct admission_knobs {
  enum admission_policy policy;
  gidx step_rows;   /* M: largest number of rows of a step; >= 1 */
  gidx quantum;     /* q: smallest number of rows for jobs in a step with live rows; 1 .. M */
  gidx budget;      /* if static: rows of jobs in a step; 1 .. M */
  gidx target;      /* T, if dynamic: rows of a step while a live client waits; >= 1 */
  gidx job_cap;     /* J, if dynamic: rows of one job in a step; 0: by (L.3) */
  gidx file_period; /* in every file_period-th step files come before bulk requests; >= 1 */
};
/* All knobs except the policy, by their names in a ledger. */
enum { ADMISSION_KNOBS = 6 };
extern const struct admission_knob {
  const char *name;
  size_t offset; /* of a gidx */
} admission_knobs[ADMISSION_KNOBS];

struct admission_job {
  gidx left;   /* number of rows still to be computed */
  int is_file; /* 1: a file of the backlog; 0: a bulk request */
};

/* Waiting work: live requests by arrival; jobs: bulk requests by arrival, then files in list
 * order. */
struct admission_queues {
  gidx step;        /* n, from 0 on */
  int watched;      /* w: does any client watch (L.6)? */
  const gidx *live; /* [n_live] rows of each, at most M */
  gidx n_live;
  const struct admission_job *jobs; /* [n_jobs] */
  gidx n_jobs;
};

struct admission {
  /* n_live: the first n_live live requests of the queue are admitted; live_rows: L, their rows */
  gidx n_live, live_rows;
  gidx allowance, cap; /* W and c */
  gidx target;         /* T'; M unless jobs are limited dynamically */
  gidx job_rows;       /* rows of all jobs */
};

/* ERR_USAGE names a knob that is out of range. */
int admission_check(const struct admission_knobs *knobs);

/* Plan a step; rows[n_jobs] <- the rows that each job gets. */
void admission_plan(const struct admission_knobs *knobs, const struct admission_queues *queues,
                    struct admission *plan, gidx *rows);

#endif
