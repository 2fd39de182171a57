/* SPDX-License-Identifier: BSD-3-Clause
 * The loop of a fit: the start, then sweeps.  Every rank makes the same decisions, from the figures
 * that rank 0 broadcasts. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "base/team.h"
#include "comm/buffers.h"
#include "fit/fit_impl.h"
#include "fit/plan.h"
#include "fit/start.h"
#include "fit/sweep.h"
#include "fit/sweep_end.h"
#include "model/advice.h"
#include "seed/mean.h"

enum fit_update fit_update_choose(const struct fit_task *t, idx top_s)
{
  real entries = (real)t->rows->n * top_s, gram = (real)t->k * t->k;
  if (t->update != UPDATE_AUTO) return t->update;
  if (t->minibatch) return fit_update_by_parts(t->k);
  return t->d == 1 && t->k <= FIT_JOINT_ATOMS_MOST && gram <= 16 * entries ? UPDATE_JOINT
                                                                           : UPDATE_ATOMS;
}

void fit_close(struct fit *f)
{
  classes_free(&f->classes);
  resident_close(&f->resident);
  update_free(&f->update);
  conjugate_free(&f->conjugate);
  fit_validation_close(&f->validation);
  part_ahead_close(&f->ahead);
  coded_close(&f->coder, &f->coded);
  worker_close(&f->warmer);
  sparse_coder_close(&f->coder);
  refit_state_free(&f->state);
  split_free(&f->split);
  arena_free(&f->arena);
  free(f);
}

static const struct phase phase_names[FIT_PHASES] = {
    [FIT_START] = {.name = "start"},
    [FIT_COLOR] = {.name = "color"},
    [FIT_UPDATE] = {.name = "update"},
    [FIT_REVIVE] = {.name = "revive"},
    [FIT_ROUND] = {.name = "round"},
    [FIT_PART] = {.name = "read"},
    [FIT_INDEX] = {.name = "index"},
    [FIT_SHOW] = {.name = "wait"},
    [FIT_WRITE] = {"write", .unit = "GB", .background = 1},
};

int fit_run(const struct fit_task *task, struct comm *c, const struct fit_sink *sink,
            struct fit_result *result)
{
  struct fit *f; /* on the heap: struct run of job/run.h says why */
  *result = (struct fit_result){0};
  TRY(comm_agree(c, struct_alloc(&f, sizeof *f)));
  f->task = task;
  f->c = f->all = c;
  f->sink = sink;
  f->result = result;
  f->begun = log_seconds();
  refit_phases(f->steps_phases);
  memcpy(result->phases, phase_names, sizeof phase_names);
  int spare = team_spare();
  phase_begin(&result->phases[FIT_START]);
  team_spare_set((task->threads + 1) / 2); /* half of the threads read; none computes yet */
  TRY(comm_agree(c, fit_sources_open(f)));
  TRY(fit_state_plan(f));
  if (!task->no_advice) advice_rows(f->fitted.n, task->k);
  if (f->mean && task->no_advice)
    TRY(mean_compute(c, &f->fitted, &sink->reading, f->mean));
  else if (f->mean)
    TRY(mean_compute_warned(c, &f->fitted, &sink->reading, f->mean, &f->norm));
  TRY(task->start ? comm_agree(c, fit_start_take(f)) : fit_start_draw(f));
  f->first = f->sweep;
  TRY(fit_start_check(f));
  TRY(fit_state_start(f));
  result->phases[FIT_UPDATE].device =
      f->resident.is_on || f->how == UPDATE_JOINT ? f->coder.device.kind : f->state.device.kind;
  if (!device_is_gpu(&f->coder.device)) team_spare_set(spare);
  if (f->resident.is_on) result->phases[FIT_INDEX].device = f->coder.device.kind;
  phase_end(&result->phases[FIT_START], 0);
  TRY(task->start ? comm_agree(c, fit_sweep_reopen(f)) : fit_sweep_close(f));
  while (!f->stopped && fit_goes_on(f, &result->end)) {
    TRY(sink->stops(sink->self, &f->stopped));
    if (f->stopped) break;
    TRY(fit_sweep_run(f));
    if (!f->stopped) TRY(fit_sweep_close(f));
    if (f->stopped) f->sweep--;
  }
  if (f->stopped) result->end = FIT_STOPPED;
  result->sweeps = f->sweep;
  result->best = f->best;
  result->gain = fit_gain(f, f->sweep);
  result->phases[FIT_ROUTE] = f->coder.route;
  result->phases[FIT_CODES] = f->coder.codes;
  result->phases[FIT_COPY] = f->coder.copy;
  sparse_coder_leave(&f->coder);
  if (f->how == UPDATE_JOINT) comm_devices_close(f->c);
  TRY(comm_unite(c, &f->alone));
  fit_close(f);
  return OK;
}
