/* SPDX-License-Identifier: BSD-3-Clause
 * Rows are solved by length, a zero atom filling up: so the operations for supports of one length
 * serve. */
#include "encode/active.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "device/codes.h"

enum {
  ACTIVE_ROWS = 1024, /* that are solved at a time */
  ACTIVE_STEP = 8     /* lengths are rounded up to a multiple */
};
static const gidx ITEM = (gidx)sizeof(float);

static struct train_codes_job job_of(const struct active *a, const float *x)
{
  return (struct train_codes_job){.x = x,
                                  .encoder = a->atoms.device,
                                  .bias = a->bias.device,
                                  .n = a->n,
                                  .p = a->p,
                                  .k = a->k,
                                  .live = {1, a->starts.device, a->list.device, a->value.device},
                                  .work = a->work.device,
                                  .work_bytes = a->work.bytes};
}

static const float *rows_of(const struct active *a)
{
  return (const float *)a->x->device + a->first * a->p;
}

static int buffers_open(struct active *a)
{
  struct device *dev = a->device;
  const struct train_codes_job job = {
      .n = a->most_n, .p = a->p, .k = a->most_k, .live = {.most = 1}};
  gidx table = (gidx)a->most_k + 1, rows = (gidx)a->most_n * a->p * ITEM;
  gidx slots = (gidx)ACTIVE_ROWS * ACTIVE_MOST;
  TRY(buffer_alloc(dev, &a->atoms, table * a->p * ITEM));
  TRY(buffer_alloc(dev, &a->toward, table * ITEM));
  TRY(buffer_alloc_device(dev, &a->bias, a->most_k * ITEM));
  TRY(buffer_alloc(dev, &a->starts, (a->most_n + 1) * (gidx)sizeof(gidx)));
  TRY(buffer_alloc(dev, &a->list, a->entries * (gidx)sizeof(idx)));
  TRY(buffer_alloc(dev, &a->value, a->entries * ITEM));
  TRY(buffer_alloc_device(dev, &a->sorted, rows));
  TRY(buffer_alloc_device(dev, &a->residual, rows));
  TRY(buffer_alloc(dev, &a->slot, slots * (gidx)sizeof(idx)));
  TRY(buffer_alloc(dev, &a->codes, slots * ITEM));
  return buffer_alloc_device(dev, &a->work, device_train_batch_bytes(dev, &job));
}

int active_open(struct active *a)
{
  struct arena *arena = &a->arena;
  TRY(arena_alloc(arena, &a->start, (gidx)a->most_n + 1, sizeof *a->start));
  TRY(arena_alloc(arena, &a->index, a->entries, sizeof *a->index));
  TRY(arena_alloc(arena, &a->score, a->entries, sizeof *a->score));
  TRY(arena_alloc(arena, &a->code, a->entries, sizeof *a->code));
  TRY(arena_alloc(arena, &a->order, a->most_n, sizeof *a->order));
  TRY(arena_alloc(arena, &a->place, a->most_n, sizeof *a->place));
  return buffers_open(a);
}

void active_close(struct active *a)
{
  struct buffer *const all[] = {&a->atoms,  &a->toward,   &a->bias, &a->starts, &a->list, &a->value,
                                &a->sorted, &a->residual, &a->slot, &a->codes,  &a->work};
  for (int i = 0; i < LENGTH(all) && a->device; i++) buffer_free(a->device, all[i]);
  arena_free(&a->arena);
  *a = (struct active){0};
}

int active_atoms(struct active *a, const float *atoms, idx k, const float *toward)
{
  gidx values = (gidx)k * a->p, rest = ((gidx)a->most_k + 1 - k) * a->p;
  float *table = a->atoms.host, *means = a->toward.host;
  a->k = k;
  memcpy(table, atoms, (size_t)(values * ITEM));
  memset(table + values, 0, (size_t)(rest * ITEM));
  memset(means, 0, ((size_t)a->most_k + 1) * sizeof *means);
  if (toward) memcpy(means, toward, (size_t)k * sizeof *means);
  TRY(device_put(a->device, &a->atoms, 0, a->atoms.bytes));
  return device_put(a->device, &a->toward, 0, a->toward.bytes);
}

/* The scores of rows, or of what is left of them beside the entries, NULL: none. */
static int rows_score(struct active *a, const float *x, const struct train_entries *entries)
{
  struct train_codes_job job = job_of(a, x);
  const struct train_raise raise = {entries, a->relative, a->floor};
  TRY(device_train_scores(a->device, &job));
  return entries || a->relative ? device_train_raise(a->device, &job, &raise) : OK;
}

int active_score(struct active *a, const struct buffer *x, gidx first, idx n)
{
  a->x = x;
  a->first = first;
  a->n = n;
  return rows_score(a, rows_of(a), NULL);
}

int active_count(struct active *a, const struct batch_cut *cut, gidx *counts)
{
  struct train_codes_job job = job_of(a, rows_of(a));
  return device_train_count(a->device, &job, cut, counts);
}

/* The entries of a row that has too many <- the largest scores, of equals the lower atom. */
static gidx row_trim(const struct active *a, gidx from, gidx to, gidx at)
{
  const float *score = a->score;
  gidx n = to - from;
  float least = n > ACTIVE_MOST ? find_largest(score + from, n, ACTIVE_MOST) : 0;
  gidx equal = 0;
  for (gidx e = from; e < to; e++) equal += score[e] > least;
  equal = ACTIVE_MOST - equal;
  for (gidx e = from; e < to; e++) {
    if (n > ACTIVE_MOST && (score[e] < least || (score[e] == least && equal-- <= 0))) continue;
    a->index[at] = a->index[e];
    a->score[at++] = score[e];
  }
  return at;
}

static int lists_get(struct active *a, const struct batch_cut *cut, gidx ties)
{
  struct device *dev = a->device;
  struct train_codes_job job = job_of(a, rows_of(a));
  TRY(device_train_cut(dev, &job, cut, ties));
  TRY(device_get(dev, &a->starts, 0, ((gidx)a->n + 1) * (gidx)sizeof(gidx)));
  const gidx *start = a->starts.host;
  gidx entries = a->n ? start[a->n] : 0;
  TRY(device_get(dev, &a->list, 0, entries * (gidx)sizeof(idx)));
  return device_get(dev, &a->value, 0, entries * ITEM);
}

int active_list(struct active *a, const struct batch_cut *cut)
{
  return lists_get(a, cut, 0);
}

/* The entries of row i, from .. to - 1, that the cut takes come first; returns their end. */
static gidx row_filter(const struct active *a, const struct score_cut *cut, idx i, gidx from,
                       gidx to)
{
  gidx at = from, tied = 0;
  for (gidx e = from; e < to; e++) {
    if (!cut_takes(cut, a->score[e], a->row + i, &tied)) continue;
    a->index[at] = a->index[e];
    a->score[at++] = a->score[e];
  }
  return at;
}

/* Entries are those of the lists, with a cut of all rows those that it takes. */
static void lists_take(struct active *a, const struct score_cut *cut)
{
  const gidx *start = a->starts.host;
  gidx entries = a->n ? start[a->n] : 0, at = 0, from = 0;
  memcpy(a->index, a->list.host, (size_t)entries * sizeof *a->index);
  memcpy(a->score, a->value.host, (size_t)entries * sizeof *a->score);
  a->start[0] = 0;
  for (idx i = 0; i < a->n; i++) {
    gidx to = start[i + 1];
    a->start[i + 1] = at = row_trim(a, from, cut ? row_filter(a, cut, i, from, to) : to, at);
    from = to;
  }
}

int active_cut(struct active *a, const struct batch_cut *cut, gidx ties)
{
  TRY(lists_get(a, cut, ties));
  lists_take(a, NULL);
  return OK;
}

static idx length_of(const struct active *a, idx i)
{
  return (idx)round_up(a->start[i + 1] - a->start[i], ACTIVE_STEP);
}

/* Rows by length, those of equal length ascending. */
static void rows_order(struct active *a)
{
  gidx first[ACTIVE_MOST / ACTIVE_STEP + 2] = {0};
  for (idx i = 0; i < a->n; i++) first[length_of(a, i) / ACTIVE_STEP + 1]++;
  for (int b = 0; b <= ACTIVE_MOST / ACTIVE_STEP; b++) first[b + 1] += first[b];
  for (idx i = 0; i < a->n; i++) {
    a->place[i] = (idx)first[length_of(a, i) / ACTIVE_STEP]++;
    a->order[a->place[i]] = i;
  }
}

/* Slots of n rows from place `at` on, of m each. */
static void slots_fill(const struct active *a, idx at, idx n, idx m)
{
  idx *slot = a->slot.host;
  for (idx j = 0; j < n; j++, slot += m) {
    idx row = a->order[at + j];
    gidx first = a->start[row], count = a->start[row + 1] - first;
    memcpy(slot, a->index + first, (size_t)count * sizeof *slot);
    for (gidx i = count; i < m; i++) slot[i] = a->most_k;
  }
}

/* Codes of n rows from place `at` on, of at most m entries each. */
static int rows_solve(struct active *a, idx at, idx n, idx m, real rho)
{
  struct device *dev = a->device;
  struct codes_job job = {.n = n,
                          .m_new = m,
                          .max_m = m,
                          .rho = rho,
                          .first = at,
                          .rows = &a->sorted,
                          .atoms = &a->atoms,
                          .slot = &a->slot,
                          .toward = rho > 0 ? &a->toward : NULL,
                          .residual = &a->residual,
                          .codes = &a->codes};
  slots_fill(a, at, n, m);
  TRY(device_put(dev, &a->slot, 0, (gidx)n * m * (gidx)sizeof(idx)));
  TRY(device_codes(dev, &job));
  TRY(device_get(dev, &a->codes, 0, (gidx)n * m * ITEM));
  const float *codes = a->codes.host;
  for (idx j = 0; j < n; j++) {
    gidx first = a->start[a->order[at + j]], count = a->start[a->order[at + j] + 1] - first;
    memcpy(a->code + first, codes + (gidx)j * m, (size_t)count * sizeof *codes);
  }
  return OK;
}

/* Codes of 0 are no entries. */
static void zeros_drop(struct active *a)
{
  gidx at = 0, e = 0;
  for (idx i = 0; i < a->n; i++) {
    for (; e < a->start[i + 1]; e++) {
      if (!(a->code[e] > 0)) continue;
      a->index[at] = a->index[e];
      a->score[at] = a->score[e];
      a->code[at++] = a->code[e];
    }
    a->start[i + 1] = at;
  }
}

int active_solve(struct active *a, real rho)
{
  struct device *dev = a->device;
  rows_order(a);
  gidx unit = a->p * ITEM;
  struct buffer x = {.device = (void *)rows_of(a)};
  struct gather_job rows = {&x, a->order, a->n, unit, &a->sorted, 0};
  if (a->n) TRY(device_gather(dev, &rows));
  for (idx at = 0, n; at < a->n; at += n) {
    idx m = length_of(a, a->order[at]);
    for (n = 1; n < ACTIVE_ROWS && at + n < a->n && length_of(a, a->order[at + n]) == m;) n++;
    struct gather_job same = {&x, a->order + at, n, unit, &a->residual, at};
    if (m > 0)
      TRY(rows_solve(a, at, n, m, rho));
    else
      TRY(device_gather(dev, &same));
  }
  zeros_drop(a);
  return OK;
}

int active_again(struct active *a)
{
  struct device *dev = a->device;
  gidx entries = a->start[a->n];
  struct gather_job back = {&a->residual, a->place, a->n, a->p * ITEM, &a->sorted, 0};
  struct train_entries raised = {1, a->starts.device, a->list.device, a->value.device};
  if (a->n) TRY(device_gather(dev, &back));
  memcpy(a->starts.host, a->start, ((size_t)a->n + 1) * sizeof *a->start);
  memcpy(a->list.host, a->index, (size_t)entries * sizeof *a->index);
  memcpy(a->value.host, a->code, (size_t)entries * sizeof *a->code);
  TRY(device_put(dev, &a->starts, 0, ((gidx)a->n + 1) * (gidx)sizeof(gidx)));
  TRY(device_put(dev, &a->list, 0, entries * (gidx)sizeof(idx)));
  TRY(device_put(dev, &a->value, 0, entries * ITEM));
  return rows_score(a, a->sorted.device, &raised);
}

/* A choice by its threshold, or by the cut of all rows. */
static int rows_choose(struct active *a, const struct found_encoder *by, int look)
{
  const struct score_cut *of_all = a->cuts ? &a->cuts->at[look] : NULL;
  struct batch_cut cut = find_cut_at(of_all ? of_all->least : by->threshold[look]);
  TRY(lists_get(a, &cut, of_all && cut.key > 0 ? (gidx)a->n * a->k : 0));
  lists_take(a, of_all);
  return OK;
}

int active_encode(struct active *a, const struct buffer *x, gidx first, idx n,
                  const struct found_encoder *by)
{
  TRY(active_score(a, x, first, n));
  for (int look = 0; look <= by->looks; look++) {
    if (look) TRY(active_again(a));
    TRY(rows_choose(a, by, look));
    TRY(active_solve(a, by->rho));
  }
  return OK;
}
