/* SPDX-License-Identifier: BSD-3-Clause
 * A block of atoms is solved as if it were a dictionary of its own.  The residuals of the rows are
 * the rows of the next block. */
#include "encode/active_nested.h"

#include <string.h>

#include "base/status.h"
#include "device/triad.h"
#include "encode/active_solve.h"

static const gidx ITEM = (gidx)sizeof(float);

/* The device's lists <- the block's entries in the pass before; *others points to them. */
static int others_put(struct active *a, struct train_entries *others)
{
  struct device *dev = a->device;
  const gidx *start = a->last.start + a->block * ((gidx)a->most_n + 1);
  gidx from = start[0], n = start[a->n] - from, *to = a->starts.host;
  for (idx i = 0; i <= a->n; i++) to[i] = start[i] - from;
  memcpy(a->list.host, a->last.index + from, (size_t)n * sizeof(idx));
  memcpy(a->value.host, a->last.code + from, (size_t)(n * ITEM));
  *others = (struct train_entries){1, a->starts.device, a->list.device, a->value.device};
  TRY(device_put(dev, &a->starts, 0, ((gidx)a->n + 1) * (gidx)sizeof(gidx)));
  TRY(device_put(dev, &a->list, 0, n * (gidx)sizeof(idx)));
  return device_put(dev, &a->value, 0, n * ITEM);
}

/* a->sorted <- the rows x minus the atoms times the codes of these entries. */
static int others_subtract(struct active *a, const struct train_entries *others, const float *x,
                           const float *atoms)
{
  const struct triad_lists lists = {a->n, others->start, others->index, others->value, atoms, a->p};
  const struct train_errors_job job = {
      .error = a->sorted.device, .x = x, .squares = a->squares.device, .n = a->n, .p = a->p};
  TRY(device_triad_sparse(a->device, &lists, a->sorted.device));
  TRY(device_train_errors(a->device, &job));
  return device_train_scale(a->device, a->sorted.device, (gidx)a->n * a->p, -1);
}

/* Score the block's atoms for the rows in use.  An atom is scored on the row minus the block's
 * other atoms that the pass before chose, times their codes.  `left` has the residuals of the rows
 * after that pass. */
static int block_score(struct active *a, idx end, const float *left, struct train_codes_job *job)
{
  struct train_entries others;
  struct train_raise raise = {.relative = a->relative, .floor = a->floor, .left = left};
  *job = active_job(a, (const float *)a->x->device + a->first * a->p);
  job->encoder += (gidx)a->block_first * a->p;
  job->k = end - a->block_first;
  if (a->look && a->n) {
    raise.entries = &others;
    TRY(others_put(a, &others));
    TRY(others_subtract(a, &others, job->x, job->encoder));
    job->x = a->sorted.device;
  }
  TRY(device_train_scores(a->device, job));
  return a->relative || raise.entries ? device_train_raise(a->device, job, &raise) : OK;
}

/* The residuals of the rows become the rows of the next block. */
static int level_next(struct active *a)
{
  const struct gather_job rows = {&a->residual, a->place, a->n, a->p * ITEM, &a->level, 0};
  a->x = &a->level;
  a->first = 0;
  return a->n ? device_gather(a->device, &rows) : OK;
}

/* Append the block's entries to the entries of the pass, as long as a row has room. */
static void entries_join(void *self, gidx part)
{
  struct active *a = self;
  const gidx *start = a->pass.start + a->block * ((gidx)a->most_n + 1);
  for (idx i = (idx)part * ACTIVE_CHUNK; i < active_end(a, part); i++) {
    const idx *index = a->index + a->start[i];
    gidx at = start[i], n = start[i + 1] - at;
    for (gidx e = 0; e < n; e++) a->pass.index[at + e] = index[e] - a->block_first;
    memcpy(a->pass.code + at, a->code + a->start[i], (size_t)(n * ITEM));
  }
}

static void pass_add(struct active *a)
{
  gidx *start = a->pass.start + a->block * ((gidx)a->most_n + 1);
  start[0] = a->block ? start[-1 - (gidx)a->most_n + a->n] : 0;
  for (idx i = 0; i < a->n; i++) {
    idx room = ACTIVE_MOST - a->pass.lengths[i];
    idx n = (idx)imin(a->start[i + 1] - a->start[i], room);
    start[i + 1] = start[i] + n;
    a->pass.lengths[i] += n;
  }
  active_parallel(a, entries_join);
}

static int block_choose(struct active *a, idx end, float threshold, const float *left, real rho)
{
  struct train_codes_job job;
  struct batch_cut cut = find_cut_at(threshold);
  TRY(block_score(a, end, left, &job));
  TRY(active_lists_get(a, job, &cut, 0));
  TRY(active_room_check(a));
  active_lists_take(a, NULL);
  for (gidx e = 0; e < a->start[a->n]; e++) a->index[e] += a->block_first;
  TRY(active_solve(a, rho));
  pass_add(a);
  return level_next(a);
}

int active_nested_pass(struct active *a, const struct buffer *x, gidx first, idx n,
                       const struct active_blocks *by, int look, gidx *found)
{
  const float *rows = (const float *)x->device + first * a->p;
  const float *left = look ? a->before.device : rows;
  const struct find_blocks *blocks = a->blocks = by->blocks;
  a->x = x;
  a->first = first;
  a->n = n;
  a->look = look;
  memset(a->pass.lengths, 0, (size_t)n * sizeof *a->pass.lengths);
  for (a->block = 0; a->block < blocks->count; a->block++) {
    a->block_first = a->block ? blocks->end[a->block - 1] : 0;
    TRY(block_choose(a, blocks->end[a->block], by->threshold[look], left, by->rho));
  }
  *found = a->pass.start[(blocks->count - 1) * ((gidx)a->most_n + 1) + n];
  return OK;
}

void active_nested_keep(struct active *a)
{
  struct buffer level = a->level;
  struct active_pass pass = a->pass;
  a->level = a->before;
  a->before = level;
  a->pass = a->last;
  a->last = pass;
}

/* Entries <- the chosen atoms, block after block. */
static void chosen_take(void *self, gidx part)
{
  struct active *a = self;
  for (idx i = (idx)part * ACTIVE_CHUNK; i < active_end(a, part); i++) {
    gidx at = a->start[i];
    for (int b = 0; b < a->blocks->count; b++) {
      const gidx *start = a->pass.start + b * ((gidx)a->most_n + 1) + i;
      idx first = b ? a->blocks->end[b - 1] : 0;
      for (gidx e = start[0]; e < start[1]; e++) a->index[at++] = first + a->pass.index[e];
    }
  }
}

int active_nested(struct active *a, const struct buffer *x, gidx first, idx n,
                  const struct active_blocks *by)
{
  for (int look = 0; look <= by->looks; look++) {
    if (look) active_nested_keep(a);
    TRY(active_nested_pass(a, x, first, n, by, look, &a->found));
  }
  TRY(active_room_check(a));
  a->start[0] = 0;
  for (idx i = 0; i < n; i++) a->start[i + 1] = a->start[i] + a->pass.lengths[i];
  active_parallel(a, chosen_take);
  memset(a->score, 0, (size_t)a->found * sizeof *a->score);
  a->x = x;
  a->first = first;
  return active_solve(a, by->rho);
}
