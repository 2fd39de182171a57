/* SPDX-License-Identifier: BSD-3-Clause
 * What the filter left: exact chains for the candidates of a block, bucket by bucket of atoms. */
#include <string.h>

#include "device/cpu_filter_inside.h"

enum { BUCKET_BYTES = 6 * 1024 * 1024 }; /* of atoms, in the cache */

/* value[begin .. end - 1] <- the exact values of these candidates of a row. */
static void row_evaluate(const struct filter_plan *plan, const struct filter_row *row,
                         const float *x, idx begin, idx end, float *value)
{
  const struct cpu_state *s = plan->device;
  idx d = s->options.d, p = s->options.p;
  for (idx j = begin; j < end; j += FILTER_CHAINS) {
    const float *vector[FILTER_CHAINS];
    float score[FILTER_CHAINS], gate[FILTER_CHAINS];
    idx count = end - j < FILTER_CHAINS ? end - j : FILTER_CHAINS;
    for (idx m = 0; m < d; m++) {
      for (idx l = 0; l < FILTER_CHAINS; l++)
        vector[l] = s->filter.frame[row->slot[j + (l < count ? l : 0)]] + (gidx)m * p;
      s->filter.loops->chains(x, vector, p, score);
      for (idx l = 0; l < FILTER_CHAINS; l++) {
        float square = score[l] * score[l];
        gate[l] = m == 0 ? square : gate[l] + square;
      }
    }
    memcpy(value + j, d == 1 ? score : gate, (size_t)count * sizeof *value);
  }
}

/* Sort a row's candidates by the bucket of their slots. */
static void row_sort(struct filter_work *w, idx i, idx bucket_slots)
{
  struct filter_row *row = w->rows + i;
  idx *start = w->buckets + i * (BUCKETS + 1), *sorted = w->sorted;
  memset(start, 0, (BUCKETS + 1) * sizeof *start);
  for (idx j = 0; j < row->count; j++) start[row->slot[j] / bucket_slots + 1]++;
  for (idx b = 0; b < BUCKETS; b++) start[b + 1] += start[b];
  idx at[BUCKETS];
  memcpy(at, start, sizeof at);
  for (idx j = 0; j < row->count; j++) sorted[at[row->slot[j] / bucket_slots]++] = row->slot[j];
  memcpy(row->slot, sorted, (size_t)row->count * sizeof *sorted);
}

/* The exact values of all candidates of a block, in their rows' size[]: bucket by bucket of atoms,
 * as many as the cache holds, as long as a row has enough candidates in each. */
void filter_evaluate(const struct filter_plan *plan, struct filter_work *w, idx first, idx n)
{
  const struct cpu_state *s = plan->device;
  idx p = s->options.p;
  gidx bytes = (gidx)s->count * s->options.d * p * (gidx)sizeof(float), candidates = 0;
  for (idx i = 0; i < n; i++) candidates += w->rows[i].count;
  gidx buckets = bytes / BUCKET_BYTES, most = candidates / ((gidx)n * 2 * FILTER_CHAINS);
  if (buckets > most) buckets = most;
  buckets = buckets < 1 ? 1 : buckets > BUCKETS ? BUCKETS : buckets;
  idx bucket_slots = (idx)((s->count + buckets - 1) / buckets);
  for (idx i = 0; i < n; i++) row_sort(w, i, bucket_slots);
  for (idx b = 0; b < buckets; b++)
    for (idx i = 0; i < n; i++) {
      const idx *start = w->buckets + i * (BUCKETS + 1);
      const float *x = (const float *)plan->job->rows->device + (gidx)(first + i) * p;
      row_evaluate(plan, w->rows + i, x, start[b], start[b + 1], w->rows[i].size);
    }
}

/* lists[first + i] <- the best of a row's candidates, whose values are exact now. */
void filter_finish(const struct filter_plan *plan, struct filter_work *w, idx first, idx i)
{
  struct list_order order = {.take = plan->job->take, .capacity = plan->capacity};
  const struct filter_row *row = w->rows + i;
  struct row_list list = {.value = row->size, .atom = row->slot, .count = row->count};
  for (idx j = 0; j < row->count; j++) list.atom[j] = plan->device->atom_of[row->slot[j]];
  for (idx j = row->count; j % LIST_STEP; j++) {
    list.value[j] = 0;
    list.atom[j] = INT32_MAX;
  }
  plan->device->route->finish(
      &order, &list, (struct entry *)plan->job->lists->device + (gidx)(first + i) * order.take);
  w->counts.candidates += row->count;
  if (row->count > w->counts.most) w->counts.most = row->count;
}
