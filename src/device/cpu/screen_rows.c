/* SPDX-License-Identifier: BSD-3-Clause
 * Compares a block of rows with the panels: thresholds in integer units, and lists of the
 * candidates that reach them. */
#include "device/cpu/screen_rows.h"

#include <float.h>
#include <string.h>

#include "device/cpu/screen_impl.h"

/* Bounds on what f32 rounding changes in thresholds, sizes and bounds (doc/certified.md, section
 * 5). */
static const real SLACK = 0x1p-18, LEAST = 0x1p-146;

/* (C.6) Set slope and reach of row i: an atom is a candidate if its size, in integer units, is
 * >= slope * (1 / scale of its frame) - reach. */
static void threshold_set(struct screen_work *w, idx i)
{
  const struct screen_row *row = w->rows + i;
  real above = row->tau - row->flat;
  w->slope[i] = above > 0 ? (float)(above / row->scale * (1 - SLACK)) : 0;
  w->reach[i] = (float)(row->steep / row->scale * (1 + SLACK));
}

/* Set a threshold that no size reaches, for a row on the direct path or a row of padding. */
static void row_drop(struct screen_work *w, idx i)
{
  w->slope[i] = 0;
  w->reach[i] = -FLT_MAX;
}

/* Quantize row first + i of the job, bound the error of its sizes, and start an empty list. */
static void row_start(const struct screen_plan *plan, struct screen_work *w, idx first, idx i)
{
  const struct cpu_state *s = plan->device;
  const struct screen_state *f = &s->screen;
  struct screen_row *row = w->rows + i;
  const struct exclusions *excluded = &plan->job->excluded;
  const float *x = (const float *)plan->job->rows->device + (gidx)(first + i) * s->options.p;
  struct quantized z;
  int32_t sum = f->loops->quantize(x, s->options.p, w->q, &z);
  struct screen_bound bound = screen_bound(&z, s->options.d, s->options.p, 0);
  real keep = s->options.test ? 1 - s->options.test->bound : 1; /* less than 1 in tests only */
  row->scale = z.scale;
  row->flat = keep * (bound.alpha * f->max_norm + bound.rest) * (1 + 0x1p-40);
  row->steep = keep * bound.beta * f->max_error * (1 + 0x1p-40);
  row->count = 0;
  row->limit =
      2 * plan->job->top_k + 96 < plan->capacity ? 2 * plan->job->top_k + 96 : plan->capacity;
  row->tau = 0;
  row->excluded = excluded->atoms + (gidx)(first + i) * excluded->stride;
  row->path = SCREEN_CERTIFIED;
  w->start[i] = 0;
  if (z.norm * f->max_norm < SCREEN_HUGE(s->options.d)) {
    w->start[i] = -f->loops->offset * sum;
    threshold_set(w, i);
  } else { /* the scores may overflow or be NaN */
    row->path = SCREEN_SCORE;
    row_drop(w, i);
  }
}

/* groups[..][4 quads / columns][rows][columns] <- the integers of rows first .. first + n - 1,
 * padded with zeros. */
void screen_rows_start(const struct screen_plan *plan, struct screen_work *w, idx first, idx n)
{
  const struct screen_loops *loops = plan->device->screen.loops;
  idx height = loops->rows, wide = loops->columns, bytes = 4 * plan->device->screen.quads;
  memset(w->groups, 0, (size_t)plan->block_rows * (size_t)bytes);
  for (idx i = 0; i < n; i++) {
    int8_t *to = w->groups + (gidx)(i / height) * bytes * height + i % height * wide;
    row_start(plan, w, first, i);
    for (idx c = 0; c < bytes; c += wide)
      for (idx j = 0; j < wide; j += 4) memcpy(to + (gidx)c * height + j, w->q + c + j, 4);
  }
  for (idx i = n; i < plan->block_rows; i++) row_drop(w, i);
}

void screen_prune(const struct screen_plan *plan, struct screen_work *w, idx i)
{
  const struct screen_state *f = &plan->device->screen;
  struct screen_row *row = w->rows + i;
  idx top_k = plan->job->top_k, kept = 0;
  struct screen_scales by = {.scale = f->scale,
                             .down = (float)(row->scale * (1 - SLACK)),
                             .up = (float)(row->scale * (1 + SLACK)),
                             .flat = (float)(row->flat * (1 + SLACK) + LEAST),
                             .steep = (float)(row->steep * (1 + SLACK))};
  f->loops->bounds(&by, row->size, row->slot, row->count, w->lower, w->upper);
  if (row->count >= top_k) row->tau = f->loops->quantile(w->lower, row->count, top_k, row->tau);
  for (idx j = 0; j < row->count; j++) {
    row->size[kept] = row->size[j];
    row->slot[kept] = row->slot[j];
    kept += w->upper[j] >= row->tau;
  }
  row->count = kept;
  row->limit = kept + kept / 2 + top_k + 64;
  if (row->limit > plan->capacity) row->limit = plan->capacity;
  threshold_set(w, i);
  if (kept < plan->capacity) return;
  row->path = SCREEN_LIST;
  row_drop(w, i);
}

static int is_excluded(const struct screen_plan *plan, const struct screen_row *row, idx atom)
{
  int found = 0;
  for (idx j = 0; j < plan->job->excluded.count; j++) found |= row->excluded[j] == atom;
  return found;
}

/* Add a candidate, unless the job excludes its atom. */
static void row_add(const struct screen_plan *plan, struct screen_work *w, idx i, idx slot,
                    float size)
{
  struct screen_row *row = w->rows + i;
  if (plan->job->excluded.count && is_excluded(plan, row, plan->device->atom_of[slot])) return;
  row->size[row->count] = size;
  row->slot[row->count] = slot;
  if (++row->count >= row->limit) screen_prune(plan, w, i);
}

void screen_panel(const struct screen_plan *plan, struct screen_work *w, idx number, idx next,
                  idx n)
{
  const struct cpu_state *s = plan->device;
  const struct screen_state *f = &s->screen;
  const struct screen_loops *loops = f->loops;
  gidx bytes = (gidx)f->quads * loops->lanes * 4;
  const uint8_t *panel = f->panels + number * bytes * s->options.d;
  idx height = loops->rows, slot = number * loops->lanes, d = s->options.d;
  idx valid = s->count - slot < loops->lanes ? s->count - slot : loops->lanes;
  uint32_t valid_lanes = (uint32_t)((UINT64_C(1) << valid) - 1);
  enum screen_step only = s->options.nonnegative ? SCREEN_POSITIVE : SCREEN_ONLY;
  for (idx row = 0; row < n; row += height) {
    const int8_t *group = w->groups + (gidx)row * f->quads * 4;
    cache_prefetch(f->panels + next * bytes * d, bytes * d, row / height,
                   (n + height - 1) / height);
    for (idx m = 0; m < d; m++)
      loops->sizes(panel + m * bytes, group, w->start + row, f->quads,
                   d == 1       ? only
                   : m == 0     ? SCREEN_FIRST
                   : m == d - 1 ? SCREEN_LAST
                                : SCREEN_NEXT,
                   w->sizes);
    uint32_t any =
        loops->pass(w->sizes, f->inverse + slot, w->slope + row, w->reach + row, w->hits);
    for (; any; any &= any - 1) {
      idx r = __builtin_ctz(any);
      for (uint32_t hits = w->hits[r] & valid_lanes; hits; hits &= hits - 1) {
        idx lane = __builtin_ctz(hits);
        if (w->rows[row + r].path == SCREEN_CERTIFIED)
          row_add(plan, w, row + r, slot + lane, w->sizes[r * loops->lanes + lane]);
      }
    }
  }
}
