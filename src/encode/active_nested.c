/* SPDX-License-Identifier: BSD-3-Clause
 * A block is solved as a dictionary of its own would be; what it leaves of the rows are the rows of
 * the next. */
#include "encode/active_nested.h"

#include <string.h>

#include "base/status.h"
#include "encode/active_solve.h"

static const gidx ITEM = (gidx)sizeof(float);

/* Scores of the atoms first .. end - 1, for the rows at hand, by the size of `left`. */
static int block_score(struct active *a, idx first, idx end, const float *left,
                       struct train_codes_job *job)
{
  const struct train_raise raise = {.relative = a->relative, .floor = a->floor, .left = left};
  *job = active_job(a, (const float *)a->x->device + a->first * a->p);
  job->encoder += (gidx)first * a->p;
  job->k = end - first;
  TRY(device_train_scores(a->device, job));
  return a->relative ? device_train_raise(a->device, job, &raise) : OK;
}

/* What the entries at hand leave of the rows are the rows at hand. */
static int level_next(struct active *a)
{
  const struct gather_job rows = {&a->residual, a->place, a->n, a->p * ITEM, &a->level, 0};
  a->x = &a->level;
  a->first = 0;
  return a->n ? device_gather(a->device, &rows) : OK;
}

/* The block's atoms join those of the rows, as long as there is room. */
static void chosen_add(void *self, gidx part)
{
  struct active *a = self;
  for (idx i = (idx)part * ACTIVE_CHUNK; i < active_end(a, part); i++) {
    idx *to = a->chosen + (gidx)i * ACTIVE_MOST, room = ACTIVE_MOST - a->chosen_n[i];
    idx n = (idx)imin(a->start[i + 1] - a->start[i], room);
    memcpy(to + a->chosen_n[i], a->index + a->start[i], (size_t)n * sizeof *to);
    a->chosen_n[i] += n;
  }
}

static int block_choose(struct active *a, idx first, idx end, float threshold, const float *left,
                        real rho)
{
  struct train_codes_job job;
  struct batch_cut cut = find_cut_at(threshold);
  TRY(block_score(a, first, end, left, &job));
  TRY(active_lists_get(a, job, &cut, 0));
  TRY(active_room_check(a));
  active_lists_take(a, NULL);
  for (gidx e = 0; e < a->start[a->n]; e++) a->index[e] += first;
  TRY(active_solve(a, rho));
  active_share(a, chosen_add);
  return level_next(a);
}

int active_nested_pass(struct active *a, const struct buffer *x, gidx first, idx n,
                       const struct active_blocks *by, int look, gidx *found)
{
  const float *rows = (const float *)x->device + first * a->p;
  const float *left = look ? a->before.device : rows;
  const idx *end = by->blocks->end;
  a->x = x;
  a->first = first;
  a->n = n;
  memset(a->chosen_n, 0, (size_t)n * sizeof *a->chosen_n);
  for (int b = 0; b < by->blocks->count; b++)
    TRY(block_choose(a, b ? end[b - 1] : 0, end[b], by->threshold[look], left, by->rho));
  *found = 0;
  for (idx i = 0; i < n; i++) *found += a->chosen_n[i];
  return OK;
}

void active_nested_keep(struct active *a)
{
  struct buffer level = a->level;
  a->level = a->before;
  a->before = level;
}

/* Entries <- the atoms that were chosen. */
static void chosen_take(void *self, gidx part)
{
  struct active *a = self;
  for (idx i = (idx)part * ACTIVE_CHUNK; i < active_end(a, part); i++)
    memcpy(a->index + a->start[i], a->chosen + (gidx)i * ACTIVE_MOST,
           (size_t)a->chosen_n[i] * sizeof *a->index);
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
  for (idx i = 0; i < n; i++) a->start[i + 1] = a->start[i] + a->chosen_n[i];
  active_share(a, chosen_take);
  memset(a->score, 0, (size_t)a->found * sizeof *a->score);
  a->x = x;
  a->first = first;
  return active_solve(a, by->rho);
}
