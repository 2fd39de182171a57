/* SPDX-License-Identifier: BSD-3-Clause
 * The number of atoms grows by half from stage to stage. */
#include "model/find_plan.h"

#include <math.h>

#include "base/num.h"
#include "model/functions.h"

enum { STAGE_FIRST = 2, BLOCK_FIRST = 4 };

/* After this part of the updates the number of active atoms per row is constant. */
static const real FALLING = 0.8;

static void stages_find(struct find_plan *plan)
{
  struct find_blocks *s = &plan->stages;
  s->count = 0;
  for (gidx k = STAGE_FIRST; k < plan->grown; k = k * 3 / 2) s->end[s->count++] = (idx)k;
  s->end[s->count++] = plan->grown;
}

void find_plan_fill(struct find_plan *plan)
{
  gidx grown = imin(plan->rows, (gidx)plan->wide * plan->k);
  plan->grown = (idx)imax(plan->k, imin(grown, INT32_MAX / 2));
  stages_find(plan);
  plan->batches = ceil_div(plan->rows, plan->batch);
}

/* Updates in which atoms move block after block. */
static gidx nested_updates(const struct find_plan *plan)
{
  return (gidx)plan->stages.count * plan->each + plan->last;
}

gidx find_plan_updates(const struct find_plan *plan)
{
  return nested_updates(plan) + plan->joint;
}

/* Mean active atoms per row, before it is reduced for stages with fewer atoms.  It falls by the
 * same factor from update to update. */
static real l0_of(const struct find_plan *plan, gidx update)
{
  if (update >= nested_updates(plan)) return plan->l0 * plan->joint_factor;
  real done = (real)update / (FALLING * (real)imax(nested_updates(plan) - 1, 1));
  real fall = log_f32((float)(plan->end_factor / plan->first_factor)) * fmin(done, 1);
  return plan->l0 * plan->first_factor * exp2_f32((float)(fall * 1.4426950408889634));
}

/* The last updates replace no atoms, since new atoms would not have time to settle. */
static int is_replacing(const struct find_plan *plan, gidx update)
{
  gidx nested = nested_updates(plan), left = nested - update;
  return (real)left > (1 - plan->settled) * (real)nested;
}

static idx atoms_of(const struct find_plan *plan, gidx update)
{
  const struct find_blocks *s = &plan->stages;
  return s->end[imin(update / imax(plan->each, 1), s->count - 1)];
}

/* Few atoms need few rows.  An update has at least two batches, unless plan->part allows only
 * one, or the job has only one. */
static gidx batches_of(const struct find_plan *plan, gidx update)
{
  gidx most = imin(plan->batches, imax(1, plan->part / plan->batch));
  gidx rows = (gidx)plan->atom_rows * atoms_of(plan, update);
  return imin(most, imax(2, rows / plan->batch));
}

struct find_step find_plan_step(const struct find_plan *plan, gidx update)
{
  struct find_step step = {.k = atoms_of(plan, update), .batches = batches_of(plan, update)};
  for (gidx u = 0; u < update; u++) step.first += batches_of(plan, u);
  step.is_last = update >= nested_updates(plan);
  step.l0 = fmin(l0_of(plan, update) * sqrt((real)step.k / plan->grown), step.k);
  step.replaces = is_replacing(plan, update);
  return step;
}

void find_plan_blocks(idx k, struct find_blocks *blocks)
{
  blocks->count = 0;
  for (idx end = BLOCK_FIRST; end < k; end *= 2) blocks->end[blocks->count++] = end;
  blocks->end[blocks->count++] = k;
}

void find_plan_batch(const struct find_plan *plan, gidx number, gidx *epoch, gidx *first,
                     idx *count)
{
  gidx at = number % plan->batches;
  *epoch = number / plan->batches;
  *first = at * plan->rows / plan->batches;
  *count = (idx)((at + 1) * plan->rows / plan->batches - *first);
}
