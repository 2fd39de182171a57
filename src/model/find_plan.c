/* SPDX-License-Identifier: BSD-3-Clause
 * Each stage has a fifth more atoms than the one before. */
#include "model/find_plan.h"

#include <math.h>

#include "base/num.h"
#include "model/functions.h"

enum { STAGE_FIRST = 2 };

/* Of the updates, after which the number of active atoms stays. */
static const real FALLING = 0.8;

static void stages_find(struct find_plan *plan)
{
  struct find_blocks *s = &plan->stages;
  s->count = 0;
  for (gidx k = STAGE_FIRST; k < plan->k; k = imax(k + 1, (12 * k + 5) / 10))
    s->end[s->count++] = (idx)k;
  s->end[s->count++] = plan->k;
}

void find_plan_fill(struct find_plan *plan)
{
  stages_find(plan);
  plan->batches = ceil_div(plan->rows, plan->batch);
}

gidx find_plan_updates(const struct find_plan *plan)
{
  return (gidx)plan->stages.count * plan->each + plan->last;
}

/* Active atoms a row, with all atoms: falls by the same factor from update to update. */
static real l0_of(const struct find_plan *plan, gidx update)
{
  real done = (real)update / (FALLING * (real)imax(find_plan_updates(plan) - 1, 1));
  real fall = log_f32((float)(plan->end_factor / plan->first_factor)) * fmin(done, 1);
  return plan->l0 * plan->first_factor * exp2_f32((float)(fall * 1.4426950408889634));
}

/* Batches that have about so many rows. */
static gidx part_batches(const struct find_plan *plan)
{
  return imin(plan->batches, imax(1, plan->part / plan->batch));
}

struct find_step find_plan_step(const struct find_plan *plan, gidx update)
{
  const struct find_blocks *s = &plan->stages;
  gidx updates = find_plan_updates(plan);
  gidx stage = imin(update / imax(plan->each, 1), s->count - 1);
  struct find_step step = {.k = s->end[stage], .batches = part_batches(plan)};
  step.is_last = update >= updates - plan->last;
  step.l0 = fmin(l0_of(plan, update) * sqrt((real)step.k / plan->k), step.k);
  step.first = update * step.batches;
  step.replaces = (real)(updates - update) > (1 - plan->settled) * (real)updates;
  return step;
}

void find_plan_batch(const struct find_plan *plan, gidx number, gidx *epoch, gidx *first,
                     idx *count)
{
  gidx at = number % plan->batches;
  *epoch = number / plan->batches;
  *first = at * plan->rows / plan->batches;
  *count = (idx)((at + 1) * plan->rows / plan->batches - *first);
}
