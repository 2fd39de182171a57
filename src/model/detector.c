/* SPDX-License-Identifier: BSD-3-Clause
 * The root is a sum over eigenvectors; the threshold is the one with the largest F1, compared as
 * fractions. */
#include "model/detector.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "base/team.h"
#include "model/eigen.h"

void covariance_add(const float *x, gidx n, idx p, idx first, idx count, real *chain)
{
  for (gidx i = 0; i < n; i++) {
    const float *row = x + i * p;
    for (idx b = 0; b < count; b++) {
      real own = row[first + b], *sum = chain + (gidx)b * p;
      for (idx c = 0; c < p; c++) sum[c] += own * (real)row[c];
    }
  }
}

/* The sum over eigenvectors z_k of scale_k z_k z_k', computed row by row. */
struct root_sum {
  idx p;
  const real *vector, *scale;
  real *root;
};

static void root_row(void *self, gidx i)
{
  const struct root_sum *s = self;
  real *row = s->root + i * s->p;
  memset(row, 0, (size_t)s->p * sizeof *row);
  for (idx k = 0; k < s->p; k++) {
    const real *z = s->vector + (gidx)k * s->p;
    real along = s->scale[k] * z[i];
    for (idx c = 0; c < s->p; c++) row[c] += along * z[c];
  }
}

int whitening_find(idx p, real *covariance, int threads, struct arena *arena, real *root)
{
  gidx square = (gidx)p * p;
  real *value, *vector, *work, largest = 0;
  TRY(arena_alloc(arena, &value, p, sizeof *value));
  TRY(arena_alloc(arena, &vector, square, sizeof *vector));
  TRY(arena_alloc(arena, &work, square + 3 * (gidx)p, sizeof *work));
  if (arena->is_dry) return OK;
  TRY(eigen_symmetric(p, covariance, value, vector, work, threads));
  for (idx k = 0; k < p; k++) largest = fmax(largest, value[k]);
  CHECK(largest > 0, ERR_INPUT,
        "all rows are the same: give rows that differ, which a detector tells apart");
  for (idx k = 0; k < p; k++) value[k] = 1 / sqrt(fmax(value[k], DETECTOR_FLOOR * largest));
  struct root_sum sum = {p, vector, value, root};
  team_run(threads, p, root_row, &sum);
  return OK;
}

void detector_make(const real *root, idx p, const float *atom, float *out)
{
  for (idx c = 0; c < p; c++) {
    const real *row = root + (gidx)c * p;
    real sum = 0;
    for (idx b = 0; b < p; b++) sum += row[b] * (real)atom[b];
    out[c] = (float)sum;
  }
}

void detector_scores(const float *x, gidx n, idx p, const float *tile, float *scores)
{
  for (gidx i = 0; i < n; i++) {
    float sum[DETECTOR_TILE] = {0};
    for (idx c = 0; c < p; c++) {
      const float *weights = tile + (gidx)c * DETECTOR_TILE;
      float value = x[i * p + c];
      for (int j = 0; j < DETECTOR_TILE; j++) sum[j] += value * weights[j];
    }
    memcpy(scores + i * DETECTOR_TILE, sum, sizeof sum);
  }
}

gidx detector_position(const float *fires, gidx n, float score)
{
  gidx low = 0, high = n;
  while (low < high) {
    gidx middle = low + (high - low) / 2;
    if (fires[middle] <= score)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

struct detector_threshold detector_threshold_find(const float *fires, gidx n, const gidx *begins)
{
  struct detector_threshold best = {.least = FLT_MAX};
  gidx said = 0;
  for (gidx i = 0; i < n && fires[i] > 0; i++) {
    said += begins[i];
    /* only the last of equal scores is a candidate */
    if (i + 1 < n && fires[i + 1] == fires[i]) continue;
    /* 2 hits / (said + n), as a fraction; there are fewer than 2^31 rows. */
    uint64_t now = (uint64_t)(i + 1) * (uint64_t)(best.said + n);
    if (best.hits && now <= (uint64_t)best.hits * (uint64_t)(said + n)) continue;
    best = (struct detector_threshold){nextafterf(fires[i], -INFINITY), i + 1, said};
  }
  return best;
}
