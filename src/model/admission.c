/* SPDX-License-Identifier: BSD-3-Clause
 * Rows are given in two passes over the jobs: in the first each job gets at most the cap, in the
 * second the remaining rows are given. */
#include "model/admission.h"

#include "base/num.h"
#include "base/status.h"

#define KNOB(name)                                                                                 \
  {                                                                                                \
#name, offsetof(struct admission_knobs, name)                                                  \
  }
const struct admission_knob admission_knobs[ADMISSION_KNOBS] = {
    KNOB(step_rows), KNOB(quantum), KNOB(budget), KNOB(target), KNOB(job_cap), KNOB(file_period),
};

static int knob_check(const char *option, gidx value, gidx least, gidx most)
{
  CHECK(value >= least && value <= most, ERR_USAGE, "'--%s' is %lld: it has to be %lld to %lld",
        option, (long long)value, (long long)least, (long long)most);
  return OK;
}

int admission_check(const struct admission_knobs *knobs)
{
  gidx m = knobs->step_rows;
  TRY(knob_check("step-rows", m, 1, INT32_MAX));
  TRY(knob_check("quantum", knobs->quantum, 1, m));
  TRY(knob_check("budget", knobs->budget, 1, m));
  TRY(knob_check("target", knobs->target, 1, INT32_MAX));
  TRY(knob_check("job-cap", knobs->job_cap, 0, INT32_MAX));
  return knob_check("file-period", knobs->file_period, 1, INT32_MAX);
}

/* Admit live requests (L.1). */
static void live_admit(const struct admission_knobs *k, const struct admission_queues *q,
                       struct admission *plan)
{
  plan->n_live = plan->live_rows = 0;
  while (plan->n_live < q->n_live && plan->live_rows + q->live[plan->n_live] <= k->step_rows)
    plan->live_rows += q->live[plan->n_live++];
}

/* Find the limits of jobs (L.2), (L.3). */
static void limits_find(const struct admission_knobs *k, const struct admission_queues *q,
                        struct admission *plan)
{
  gidx m = k->step_rows;
  plan->allowance = plan->cap = plan->target = m;
  if (k->policy == ADMISSION_OFF || !q->watched) return;
  if (k->policy == ADMISSION_STATIC) {
    plan->allowance = imin(m, k->budget);
    return;
  }
  if (k->target >= m) return;
  plan->target = imax(k->quantum, k->target);
  plan->allowance = imax(k->quantum, plan->target - plan->live_rows);
  gidx even = q->n_jobs > 1 ? ceil_div(plan->target, 2) : plan->target;
  plan->cap = imin(m, imax(k->quantum, k->job_cap ? k->job_cap : even));
}

/* Give rows to the jobs of one kind (files, or bulk requests) in order.  The rows that a job
 * has in the step become at most `most`.  *room: rows still to give. */
static void jobs_admit(const struct admission_queues *q, int files, gidx most, gidx *room,
                       gidx *rows)
{
  for (gidx j = 0; j<q->n_jobs && * room> 0; j++) {
    if (q->jobs[j].is_file != files) continue;
    gidx more = imax(imin(imin(q->jobs[j].left, most) - rows[j], *room), 0);
    rows[j] += more;
    *room -= more;
  }
}

void admission_plan(const struct admission_knobs *knobs, const struct admission_queues *queues,
                    struct admission *plan, gidx *rows)
{
  gidx m = knobs->step_rows;
  live_admit(knobs, queues, plan);
  limits_find(knobs, queues, plan);
  gidx all = imin(plan->allowance, m - plan->live_rows), room = all; /* (L.4) */
  int files = queues->step % knobs->file_period == 0;
  for (gidx j = 0; j < queues->n_jobs; j++) rows[j] = 0;
  for (int pass = 0; pass < 2; pass++) {
    gidx most = pass ? INT64_MAX : plan->cap;
    jobs_admit(queues, files, most, &room, rows);
    jobs_admit(queues, !files, most, &room, rows);
  }
  plan->job_rows = all - room;
}
