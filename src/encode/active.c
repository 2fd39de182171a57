/* SPDX-License-Identifier: BSD-3-Clause
 * The device makes scores and lists; threads cut and trim the lists, row by row. */
#include <string.h>

#include "base/status.h"
#include "encode/active_solve.h"
#include "model/find_plan.h"

static const gidx ITEM = (gidx)sizeof(float);

struct train_codes_job active_job(const struct active *a, const float *x)
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
  gidx trimmed = imin(a->entries, (gidx)a->most_n * ACTIVE_MOST);
  gidx slots = trimmed + trimmed / 2 + (gidx)a->most_n * ACTIVE_STEP;
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
  if (a->is_nested) TRY(buffer_alloc_device(dev, &a->level, rows));
  if (a->is_nested) TRY(buffer_alloc_device(dev, &a->before, rows));
  if (a->is_nested) TRY(buffer_alloc_device(dev, &a->squares, 2 * a->most_n * (gidx)sizeof(real)));
  return buffer_alloc_device(dev, &a->work, device_train_batch_bytes(dev, &job));
}

static int pass_alloc(struct active *a, struct active_pass *pass)
{
  struct find_blocks blocks;
  find_plan_blocks(a->most_k, &blocks);
  gidx starts = blocks.count * ((gidx)a->most_n + 1);
  TRY(arena_alloc(&a->arena, &pass->start, starts, sizeof *pass->start));
  TRY(arena_alloc(&a->arena, &pass->index, a->entries, sizeof *pass->index));
  TRY(arena_alloc(&a->arena, &pass->code, a->entries, sizeof *pass->code));
  return arena_alloc(&a->arena, &pass->lengths, a->most_n, sizeof *pass->lengths);
}

int active_open(struct active *a)
{
  struct arena *arena = &a->arena;
  TRY(arena_alloc(arena, &a->start, (gidx)a->most_n + 1, sizeof *a->start));
  TRY(arena_alloc(arena, &a->index, a->entries, sizeof *a->index));
  TRY(arena_alloc(arena, &a->score, a->entries, sizeof *a->score));
  TRY(arena_alloc(arena, &a->other.start, (gidx)a->most_n + 1, sizeof *a->other.start));
  TRY(arena_alloc(arena, &a->other.index, a->entries, sizeof *a->other.index));
  TRY(arena_alloc(arena, &a->other.score, a->entries, sizeof *a->other.score));
  TRY(arena_alloc(arena, &a->code, a->entries, sizeof *a->code));
  TRY(arena_alloc(arena, &a->order, a->most_n, sizeof *a->order));
  TRY(arena_alloc(arena, &a->place, a->most_n, sizeof *a->place));
  if (a->is_nested) TRY(pass_alloc(a, &a->pass));
  if (a->is_nested) TRY(pass_alloc(a, &a->last));
  return buffers_open(a);
}

void active_close(struct active *a)
{
  struct buffer *const all[] = {&a->atoms, &a->toward, &a->bias,     &a->starts, &a->list,
                                &a->value, &a->sorted, &a->residual, &a->slot,   &a->codes,
                                &a->work,  &a->level,  &a->before,   &a->squares};
  for (int i = 0; i < LENGTH(all) && a->device; i++) buffer_free(a->device, all[i]);
  arena_free(&a->arena);
  *a = (struct active){0};
}

int active_atoms(struct active *a, const float *atoms, idx k, const float *toward)
{
  gidx values = (gidx)k * a->p, rest = ((gidx)a->most_k + 1 - k) * a->p;
  float *table = a->atoms.host, *means = a->toward.host;
  a->k = k;
  a->fits = a->most_n;
  memcpy(table, atoms, (size_t)(values * ITEM));
  memset(table + values, 0, (size_t)(rest * ITEM));
  memset(means, 0, ((size_t)a->most_k + 1) * sizeof *means);
  if (toward) memcpy(means, toward, (size_t)k * sizeof *means);
  TRY(device_put(a->device, &a->atoms, 0, a->atoms.bytes));
  return device_put(a->device, &a->toward, 0, a->toward.bytes);
}

/* Score the rows x.  With entries, x has residuals instead: then the code of each entry is added to
 * the score of the entry's atom. */
static int rows_score(struct active *a, const float *x, const struct train_entries *entries)
{
  struct train_codes_job job = active_job(a, x);
  const struct train_raise raise = {.entries = entries, .relative = a->relative, .floor = a->floor};
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
  struct train_codes_job job = active_job(a, rows_of(a));
  return device_train_count(a->device, &job, cut, counts);
}

int active_lists_get(struct active *a, struct train_codes_job job, const struct batch_cut *cut,
                     gidx ties)
{
  struct device *dev = a->device;
  job.room = a->entries;
  TRY(device_train_cut(dev, &job, cut, ties));
  TRY(device_get(dev, &a->starts, 0, ((gidx)a->n + 1) * (gidx)sizeof(gidx)));
  a->found = a->n ? ((const gidx *)a->starts.host)[a->n] : 0;
  if (a->found > a->entries) return OK;
  TRY(device_get(dev, &a->list, 0, a->found * (gidx)sizeof(idx)));
  return device_get(dev, &a->value, 0, a->found * ITEM);
}

int active_room_check(const struct active *a)
{
  CHECK(a->found <= a->entries, ERR_INTERNAL, "room for %lld entries of %d rows, which have %lld",
        (long long)a->entries, a->n, (long long)a->found);
  return OK;
}

int active_list(struct active *a, const struct batch_cut *cut)
{
  TRY(active_lists_get(a, active_job(a, rows_of(a)), cut, 0));
  return active_room_check(a);
}

/* order[i] <- how many entries of row i the cut takes; they move to the front of its list.
 * a->place is not touched: active_again() still needs it. */
static void lists_filter(void *self, gidx part)
{
  struct active *a = self;
  const gidx *start = a->starts.host;
  idx *index = a->list.host;
  float *score = a->value.host;
  for (idx i = (idx)part * ACTIVE_CHUNK; i < active_end(a, part); i++) {
    gidx at = start[i], tied = 0;
    for (gidx e = start[i]; e < start[i + 1]; e++) {
      if (a->cut && !cut_takes(a->cut, score[e], a->row + i, &tied)) continue;
      index[at] = index[e];
      score[at++] = score[e];
    }
    a->order[i] = (idx)(at - start[i]);
  }
}

/* Entries of row i <- the first n of its list.  If n > ACTIVE_MOST: the ACTIVE_MOST largest scores;
 * of equal scores, the lower atom comes first. */
static void row_trim(struct active *a, idx i, gidx from, gidx n)
{
  const idx *index = (const idx *)a->list.host + from;
  const float *score = (const float *)a->value.host + from;
  float least = n > ACTIVE_MOST ? find_largest(score, n, ACTIVE_MOST) : 0;
  gidx at = a->start[i], equal = 0;
  for (gidx e = 0; e < n; e++) equal += score[e] > least;
  equal = ACTIVE_MOST - equal;
  for (gidx e = 0; e < n; e++) {
    if (n > ACTIVE_MOST && (score[e] < least || (score[e] == least && equal-- <= 0))) continue;
    a->index[at] = index[e];
    a->score[at++] = score[e];
  }
}

static void lists_trim(void *self, gidx part)
{
  struct active *a = self;
  const gidx *start = a->starts.host;
  for (idx i = (idx)part * ACTIVE_CHUNK; i < active_end(a, part); i++)
    row_trim(a, i, start[i], a->order[i]);
}

void active_lists_take(struct active *a, const struct score_cut *cut)
{
  memset(a->start, 0, ((size_t)a->n + 1) * sizeof *a->start);
  if (a->found > a->entries) return;
  a->cut = cut;
  active_parallel(a, lists_filter);
  for (idx i = 0; i < a->n; i++) a->start[i + 1] = a->start[i] + imin(a->order[i], ACTIVE_MOST);
  active_parallel(a, lists_trim);
}

int active_cut(struct active *a, const struct batch_cut *cut, gidx ties)
{
  TRY(active_lists_get(a, active_job(a, rows_of(a)), cut, ties));
  active_lists_take(a, NULL);
  return OK;
}

/* For some of the rows: copy their entries to the lists on the host, with the codes as values. */
static void lists_give(void *self, gidx part)
{
  const struct active *a = self;
  idx first = (idx)part * ACTIVE_CHUNK, end = active_end(a, part);
  gidx at = a->start[first], n = a->start[end] - at;
  memcpy((gidx *)a->starts.host + first, a->start + first, (size_t)(end - first) * sizeof(gidx));
  memcpy((idx *)a->list.host + at, a->index + at, (size_t)n * sizeof(idx));
  memcpy((float *)a->value.host + at, a->code + at, (size_t)n * sizeof(float));
}

int active_again(struct active *a)
{
  struct device *dev = a->device;
  gidx entries = a->start[a->n];
  struct gather_job back = {&a->residual, a->place, a->n, a->p * ITEM, &a->sorted, 0};
  struct train_entries raised = {1, a->starts.device, a->list.device, a->value.device};
  if (a->n) TRY(device_gather(dev, &back));
  active_parallel(a, lists_give);
  ((gidx *)a->starts.host)[a->n] = entries;
  TRY(device_put(dev, &a->starts, 0, ((gidx)a->n + 1) * (gidx)sizeof(gidx)));
  TRY(device_put(dev, &a->list, 0, entries * (gidx)sizeof(idx)));
  TRY(device_put(dev, &a->value, 0, entries * ITEM));
  return rows_score(a, a->sorted.device, &raised);
}

/* Choose by the threshold of choice number `look`; with a->cuts, by the cut of all rows. */
static int rows_choose(struct active *a, const struct found_encoder *by, int look)
{
  const struct score_cut *of_all = a->cuts ? &a->cuts->at[look] : NULL;
  struct batch_cut cut = find_cut_at(of_all ? of_all->least : by->threshold[look]);
  gidx ties = of_all && cut.key > 0 ? (gidx)a->n * a->k : 0;
  TRY(active_lists_get(a, active_job(a, rows_of(a)), &cut, ties));
  active_lists_take(a, of_all);
  return OK;
}

/* active_encode() without its error: it returns early when there is no room for the lists. */
static int rows_encode(struct active *a, const struct buffer *x, gidx first, idx n,
                       const struct found_encoder *by)
{
  TRY(active_score(a, x, first, n));
  a->found = 0;
  for (int look = 0; look <= by->looks; look++) {
    if (look) TRY(active_again(a));
    TRY(rows_choose(a, by, look));
    if (a->found > a->entries) return OK;
    TRY(active_solve(a, by->rho));
  }
  return OK;
}

int active_encode(struct active *a, const struct buffer *x, gidx first, idx n,
                  const struct found_encoder *by)
{
  TRY(rows_encode(a, x, first, n, by));
  return active_room_check(a);
}

int active_encode_some(struct active *a, const struct buffer *x, gidx first, idx *n,
                       const struct found_encoder *by)
{
  for (*n = (idx)imin(*n, a->fits);; *n = a->fits = *n / 2) {
    TRY(rows_encode(a, x, first, *n, by));
    if (a->found <= a->entries || *n <= 1) return active_room_check(a);
  }
}
