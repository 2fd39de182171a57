/* SPDX-License-Identifier: BSD-3-Clause
 * Exact scores of the candidates of a block.  A bucket is a range of slots; the candidates of all
 * rows are done bucket by bucket, so that the atoms of a bucket stay in the cache. */
#include "device/cpu/screen_rescore.h"

#include <string.h>

enum { BUCKET_BYTES = 6 * 1024 * 1024 }; /* of atoms; fits the last-level cache */

/* value[begin .. end - 1] <- the exact scores of these candidates of a row. */
static void row_evaluate(const struct screen_plan *plan, const struct screen_row *row,
                         const float *x, idx begin, idx end, float *value)
{
  const struct cpu_state *s = plan->device;
  idx d = s->options.d, p = s->options.p;
  for (idx j = begin; j < end; j += SCREEN_RESCORE_WIDTH) {
    const float *vector[SCREEN_RESCORE_WIDTH];
    float score[SCREEN_RESCORE_WIDTH], gate[SCREEN_RESCORE_WIDTH];
    idx count = end - j < SCREEN_RESCORE_WIDTH ? end - j : SCREEN_RESCORE_WIDTH;
    for (idx m = 0; m < d; m++) {
      for (idx l = 0; l < SCREEN_RESCORE_WIDTH; l++)
        vector[l] = s->screen.frame[row->slot[j + (l < count ? l : 0)]] + (gidx)m * p;
      s->screen.loops->chains(x, vector, p, score);
      for (idx l = 0; l < SCREEN_RESCORE_WIDTH; l++) {
        float square = score[l] * score[l];
        gate[l] = m == 0 ? square : gate[l] + square;
      }
    }
    if (s->options.nonnegative)
      for (idx l = 0; l < count; l++) score[l] = route_positive(score[l]);
    memcpy(value + j, d == 1 ? score : gate, (size_t)count * sizeof *value);
  }
}

/* Sort the candidates of a row by bucket (counting sort). */
static void row_sort(struct screen_work *w, idx i, idx bucket_slots)
{
  struct screen_row *row = w->rows + i;
  idx *start = w->buckets + i * (SCREEN_BUCKETS + 1), *sorted = w->sorted;
  memset(start, 0, (SCREEN_BUCKETS + 1) * sizeof *start);
  for (idx j = 0; j < row->count; j++) start[row->slot[j] / bucket_slots + 1]++;
  for (idx b = 0; b < SCREEN_BUCKETS; b++) start[b + 1] += start[b];
  idx at[SCREEN_BUCKETS];
  memcpy(at, start, sizeof at);
  for (idx j = 0; j < row->count; j++) sorted[at[row->slot[j] / bucket_slots]++] = row->slot[j];
  memcpy(row->slot, sorted, (size_t)row->count * sizeof *sorted);
}

/* The number of buckets follows from the cache.  It stays so small that on average a row has two
 * full vectors of candidates in each bucket. */
void screen_rescore(const struct screen_plan *plan, struct screen_work *w, idx first, idx n)
{
  const struct cpu_state *s = plan->device;
  idx p = s->options.p;
  gidx bytes = (gidx)s->count * s->options.d * p * (gidx)sizeof(float), candidates = 0;
  for (idx i = 0; i < n; i++) candidates += w->rows[i].count;
  gidx buckets = bytes / BUCKET_BYTES, max = candidates / ((gidx)n * 2 * SCREEN_RESCORE_WIDTH);
  if (buckets > max) buckets = max;
  buckets = buckets < 1 ? 1 : buckets > SCREEN_BUCKETS ? SCREEN_BUCKETS : buckets;
  idx bucket_slots = (idx)((s->count + buckets - 1) / buckets);
  for (idx i = 0; i < n; i++) row_sort(w, i, bucket_slots);
  for (idx b = 0; b < buckets; b++)
    for (idx i = 0; i < n; i++) {
      const idx *start = w->buckets + i * (SCREEN_BUCKETS + 1);
      const float *x = (const float *)plan->job->rows->device + (gidx)(first + i) * p;
      row_evaluate(plan, w->rows + i, x, start[b], start[b + 1], w->rows[i].size);
    }
}

void screen_select(const struct screen_plan *plan, struct screen_work *w, idx first, idx i)
{
  struct list_order order = {.top_k = plan->job->top_k, .capacity = plan->capacity};
  const struct screen_row *row = w->rows + i;
  struct row_list list = {.value = row->size, .atom = row->slot, .count = row->count};
  for (idx j = 0; j < row->count; j++) list.atom[j] = plan->device->atom_of[row->slot[j]];
  for (idx j = row->count; j % LIST_STEP; j++) {
    list.value[j] = 0;
    list.atom[j] = INT32_MAX;
  }
  plan->device->route->finish(
      &order, &list, (struct entry *)plan->job->lists->device + (gidx)(first + i) * order.top_k);
  w->counts.candidates += row->count;
  if (row->count > w->counts.max) w->counts.max = row->count;
}
