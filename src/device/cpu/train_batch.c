/* SPDX-License-Identifier: BSD-3-Clause
 * The scores of all rows of this rank are kept.  Rows are divided among threads.  Scores that equal
 * the cut become codes in the order of rows. */
#include "device/cpu/train_batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "device/cpu/cpu.h"
#include "device/cpu/train_impl.h"
#include "model/find.h"

/* The arrays in the job's work: scores[n][k], then ties[n]. */
static gidx *ties_of(const struct train_codes_job *job)
{
  gidx at = round_up((gidx)job->n * job->k * (gidx)sizeof(float), CACHE_LINE);
  return (gidx *)((char *)job->work + at);
}

enum { SQUARES = 32 }; /* rows whose squares a thread sums at a time */

gidx cpu_train_batch_bytes(const struct train_codes_job *job)
{
  gidx scores = round_up((gidx)job->n * job->k * (gidx)sizeof(float), CACHE_LINE);
  return scores + job->n * (gidx)sizeof(gidx);
}

int cpu_train_scores(struct device *dev, const struct train_codes_job *job)
{
  return job->n ? cpu_train_product(dev, job, 0, job->n, job->work) : OK;
}

static void row_raise(const struct train_codes_job *job, const struct train_raise *raise, idx i,
                      real square)
{
  const struct train_entries *e = raise->entries;
  struct find_raise row = {
      .k = job->k, .square = square, .relative = raise->relative, .floor = raise->floor};
  if (e) {
    row.n = (idx)(e->start[i + 1] - e->start[i]);
    row.index = e->index + e->start[i];
    row.code = e->value + e->start[i];
  }
  find_raise(&row, (float *)job->work + (gidx)i * job->k);
}

int cpu_train_raise(struct device *dev, const struct train_codes_job *job,
                    const struct train_raise *raise)
{
  const float *left = raise->left ? raise->left : job->x;
#pragma omp parallel for num_threads(cpu_of(dev)->options.threads)
  for (idx first = 0; first < job->n; first += SQUARES) {
    idx count = (idx)imin(job->n - first, SQUARES);
    real square[SQUARES] = {0};
    if (raise->relative)
      cpu_of(dev)->triad->squares(left + (gidx)first * job->p, job->p, count, job->p, square, 1);
    for (idx i = 0; i < count; i++) row_raise(job, raise, first + i, square[i]);
  }
  return OK;
}

/* Scores are examined in chunks.  If few scores are codes, few chunks have a score that counts. */
enum { CHUNK = 32 };

/* The keys whose next digit is counted: least .. least + width - 1 (model/batch_cut.h). */
struct key_range {
  uint32_t first, least, width; /* `least` is `first`, or 1 if that is 0, since key 0 is no code */
  int shift;
};

static struct key_range range_of(const struct batch_cut *cut)
{
  struct key_range r;
  int known;
  batch_bits(cut, &r.shift, &known);
  r.first = (uint32_t)cut->key >> known << known;
  r.least = r.first ? r.first : 1;
  r.width = (UINT32_C(1) << known) - (r.least - r.first);
  return r;
}

/* Count batch_digit() of each of n <= CHUNK scores in bins, without unpredictable branches. */
static void chunk_count(const float *scores, idx n, const struct key_range *range, gidx *bins)
{
  const struct key_range r = *range;
  uint32_t offset[CHUNK];
  int some = 0;
#pragma omp simd reduction(| : some)
  for (idx a = 0; a < n; a++) {
    offset[a] = (uint32_t)batch_key(scores[a]) - r.least;
    some |= offset[a] < r.width;
  }
  if (!some) return;
  idx kept = 0;
  for (idx a = 0; a < n; a++) {
    uint32_t at = offset[a];
    offset[kept] = at;
    kept += at < r.width;
  }
  for (idx i = 0; i < kept; i++) bins[(offset[i] + (r.least - r.first)) >> r.shift]++;
}

int cpu_train_count(struct device *dev, const struct train_codes_job *job,
                    const struct batch_cut *cut, gidx *counts)
{
  int threads = cpu_of(dev)->options.threads;
  const struct key_range range = range_of(cut);
  gidx *each;
  TRY(struct_alloc(&each, (size_t)threads * BATCH_BINS * sizeof *each));
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; t++) {
    gidx *own = each + (gidx)t * BATCH_BINS;
    for (gidx i = t; i < job->n; i += threads) {
      const float *scores = (const float *)job->work + i * job->k;
      for (idx a = 0; a < job->k; a += CHUNK)
        chunk_count(scores + a, imin(CHUNK, job->k - a), &range, own);
    }
  }
  memcpy(counts, each, BATCH_BINS * sizeof *counts);
  for (int t = 1; t < threads; t++)
    for (int b = 0; b < BATCH_BINS; b++) counts[b] += each[(gidx)t * BATCH_BINS + b];
  free(each);
  return OK;
}

/* Returns the number of scores above the cut; *ties <- the number that equal it. */
static gidx row_count(const float *scores, idx k, int32_t cut, gidx *ties)
{
  idx above = 0, equal = 0;
#pragma omp simd reduction(+ : above, equal)
  for (idx a = 0; a < k; a++) {
    int32_t key = batch_key(scores[a]);
    above += key > cut;
    equal += key == cut;
  }
  *ties = cut > 0 ? equal : 0;
  return above;
}

/* at[CHUNK] <- the indices of the scores, of n <= CHUNK, that are not below the cut; returns their
 * number. */
static idx chunk_find(const float *scores, idx n, int32_t cut, idx *at)
{
  int some = 0;
#pragma omp simd reduction(| : some)
  for (idx a = 0; a < n; a++) some |= batch_key(scores[a]) >= cut;
  idx found = 0;
  for (idx a = 0; some && a < n; a++) {
    at[found] = a;
    found += batch_key(scores[a]) >= cut;
  }
  return found;
}

/* The entries of a row: the scores above the cut, and the first `ties` scores that equal it. */
static void row_take(const float *scores, idx k, int32_t cut, gidx ties, idx *index, float *value)
{
  gidx n = 0;
  for (idx begin = 0; begin < k; begin += CHUNK) {
    idx at[CHUNK], found = chunk_find(scores + begin, imin(CHUNK, k - begin), cut, at);
    for (idx i = 0; i < found; i++) {
      float score = scores[begin + at[i]];
      int32_t key = batch_key(score);
      if (key == 0 || (key == cut && ties-- <= 0)) continue;
      index[n] = begin + at[i];
      value[n++] = score;
    }
  }
}

int cpu_train_cut(struct device *dev, const struct train_codes_job *job,
                  const struct batch_cut *cut, gidx ties)
{
  int threads = cpu_of(dev)->options.threads;
  const struct train_entries *live = &job->live;
  gidx *tied = ties_of(job);
  float *scores = job->work;
#pragma omp parallel for num_threads(threads)
  for (idx i = 0; i < job->n; i++)
    live->start[i + 1] = row_count(scores + (gidx)i * job->k, job->k, cut->key, &tied[i]);
  live->start[0] = 0;
  for (idx i = 0; i < job->n; i++) {
    tied[i] = imin(tied[i], ties);
    ties -= tied[i];
    live->start[i + 1] += live->start[i] + tied[i];
  }
  if (job->room && live->start[job->n] > job->room) return OK;
#pragma omp parallel for num_threads(threads)
  for (idx i = 0; i < job->n; i++) {
    float *row = scores + (gidx)i * job->k;
    gidx at = live->start[i];
    row_take(row, job->k, cut->key, tied[i], live->index + at, live->value + at);
    if (job->is_dead) cpu_train_dead(job, row, i);
  }
  if (job->is_dead) cpu_train_pack(&job->dead, job->n);
  return OK;
}
