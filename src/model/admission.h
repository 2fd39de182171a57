/* SPDX-License-Identifier: BSD-3-Clause
 * Which rows a step of the live lane takes: live requests first, then rows of jobs (L.1 to L.5).
 *
 * Floor: model.  A pure function of integers: of the past it knows the queues and the number of the
 * step, so that every rank, and whoever reads the ledger, plans the same. */
#ifndef MODEL_ADMISSION_H
#define MODEL_ADMISSION_H

#include <stddef.h>

#include "base/types.h"

enum admission_policy { ADMISSION_OFF, ADMISSION_STATIC, ADMISSION_DYNAMIC };

/* Fixed for the life of a server; rows unless said otherwise. */
struct admission_knobs {
  enum admission_policy policy;
  gidx step_rows;   /* M: of a step at most; >= 1 */
  gidx quantum;     /* q: what jobs get at least beside live rows; 1 .. M */
  gidx budget;      /* of jobs in a step, static; 1 .. M */
  gidx target;      /* T: of a step that somebody waits for, dynamic; >= 1 */
  gidx job_cap;     /* J: of one job in a step, dynamic; 0: by (L.3) */
  gidx file_period; /* files come first in every so many steps; >= 1 */
};
/* All but the policy, by the names that a ledger has for them. */
enum { ADMISSION_KNOBS = 6 };
extern const struct admission_knob {
  const char *name;
  size_t offset; /* of a gidx */
} admission_knobs[ADMISSION_KNOBS];

struct admission_job {
  gidx left;   /* rows that are still to be computed */
  int is_file; /* a file of the backlog; else a bulk request */
};

/* What waits: live requests by arrival; bulk requests by arrival, then files by their list. */
struct admission_queues {
  gidx step;        /* n, from 0 on */
  int watched;      /* w: does anybody watch (L.6)? */
  const gidx *live; /* [n_live] rows of each, at most M */
  gidx n_live;
  const struct admission_job *jobs; /* [n_jobs] */
  gidx n_jobs;
};

struct admission {
  gidx n_live, live_rows; /* requests that are admitted, from the first on; L */
  gidx allowance, cap;    /* W and c */
  gidx target;            /* T'; M unless dynamic */
  gidx job_rows;          /* of all jobs */
};

/* ERR_USAGE names a knob that is out of range. */
int admission_check(const struct admission_knobs *knobs);

/* The plan of a step; rows[n_jobs] <- those that each job gets. */
void admission_plan(const struct admission_knobs *knobs, const struct admission_queues *queues,
                    struct admission *plan, gidx *rows);

#endif
