/* SPDX-License-Identifier: BSD-3-Clause
 * The sink keeps the best atoms in memory.  It saves nothing inside a sweep. */
#include "fit/quiet.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"

struct quiet_run {
  struct fit_quiet *quiet;
  const struct fit_task *task;
  struct comm *c;
  struct fit_result result;
};

static int sweep_keep(void *self, const struct fit_sweep *s)
{
  struct quiet_run *q = self;
  const struct fit_line *l = &s->point.lines[s->point.sweep];
  size_t p = (size_t)q->task->rows->p;
  log_info("%s, sweep %3lld: unseen %.6f, fitted %.6f, dead %lld", q->quiet->name,
           (long long)l->sweep, l->held, l->fitted, (long long)l->dead);
  if (s->point.mean) memcpy(q->quiet->mean, s->point.mean, p * sizeof *s->point.mean);
  if (s->best != s->point.sweep) return OK;
  q->quiet->best = *l;
  memcpy(q->quiet->atoms, s->point.atoms, (size_t)q->task->k * p * sizeof *s->point.atoms);
  return OK;
}

static int stop_ask_all(void *self, int *stop)
{
  struct quiet_run *q = self;
  const struct stops *stops = &q->quiet->stops;
  uint64_t asked = stops_asked(stops);
  TRY(comm_or(q->c, &asked, 1));
  *stop = asked != 0;
  if (asked) stops->stopped(stops->self, asked);
  return OK;
}

static int within_begin(void *self, const struct fit_within *now, struct sweep_start *start)
{
  (void)self;
  (void)now;
  *start = (struct sweep_start){.atoms = 0};
  return OK;
}

static int within_ask(void *self, const struct sweep_point *at, int *stop)
{
  (void)at;
  return stop_ask_all(self, stop);
}

int fit_quiet_run(const struct fit_task *task, struct comm *c, struct fit_quiet *quiet)
{
  struct quiet_run *q; /* on the heap: struct run of job/run.h says why */
  TRY(comm_agree(c, struct_alloc(&q, sizeof *q)));
  *q = (struct quiet_run){.quiet = quiet, .task = task, .c = c};
  const struct fit_sink sink = {q,          sweep_keep,   stop_ask_all, within_begin,
                                within_ask, quiet->stops, quiet->stops};
  TRY(fit_run(task, c, &sink, &q->result));
  quiet->end = q->result.end;
  quiet->sweeps = q->result.sweeps;
  free(q);
  return OK;
}
