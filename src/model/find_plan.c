/* SPDX-License-Identifier: BSD-3-Clause
 * Stages double up to a width, from where on they grow by it. */
#include "model/find_plan.h"

#include <math.h>

#include "base/num.h"
#include "model/functions.h"

enum { STAGE_FIRST = 8, STAGE_STEP = 512 };

/* Of the updates, after which the number of active atoms stays. */
static const real FALLING = 0.8;

static void stages_find(struct find_plan *plan)
{
  struct find_blocks *s = &plan->stages;
  gidx step = STAGE_STEP;
  while (plan->k / step > FIND_BLOCKS_MOST - 16) step *= 2;
  s->count = 0;
  for (gidx k = STAGE_FIRST; k < plan->k; k = k < step ? 2 * k : k + step)
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
  real fall = log_f32((float)(plan->end_share / plan->first_share)) * fmin(done, 1);
  return plan->l0 * plan->first_share * exp2_f32((float)(fall * 1.4426950408889634));
}

/* Batches that have about so many rows. */
static gidx part_batches(const struct find_plan *plan)
{
  return imin(plan->batches, imax(1, plan->part / plan->batch));
}

static int is_whole(const struct find_plan *plan, gidx update)
{
  return update >= find_plan_updates(plan) - plan->whole;
}

struct find_step find_plan_step(const struct find_plan *plan, gidx update)
{
  const struct find_blocks *s = &plan->stages;
  gidx updates = find_plan_updates(plan), before = imin(update, updates - plan->whole);
  gidx stage = imin(update / imax(plan->each, 1), s->count - 1);
  struct find_step step = {.k = s->end[stage]};
  step.is_whole = is_whole(plan, update);
  step.l0 = fmin(l0_of(plan, update) * sqrt((real)step.k / plan->k), step.k);
  step.batches = step.is_whole ? plan->batches : part_batches(plan);
  step.first = before * part_batches(plan) + (update - before) * plan->batches;
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
