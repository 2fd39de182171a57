/* SPDX-License-Identifier: BSD-3-Clause
 * A power iteration with a threshold, for each direction, by the products of triad.h. */
#include "model/find_grow.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "model/find.h"
#include "model/find_update.h"
#include "model/triad.h"

idx grow_candidates(idx need, idx n)
{
  return (idx)imax(need, imin(4 * (gidx)need + 8, n));
}

idx grow_rank(idx n, idx k)
{
  gidx rank = imax(3 * (gidx)n / 1000, n / (4 * (gidx)k));
  return (idx)imin(n, imax(4, rank));
}

float grow_cut(float *values, idx n, idx rank)
{
  float threshold = find_largest(values, n, rank);
  for (idx i = 0; i < n; i++) {
    float above = values[i] - threshold;
    values[i] = above > 0 ? above : 0;
  }
  return threshold;
}

int grow_directions_reference(const struct grow_rows *r, float *directions, idx m, float *threshold)
{
  struct arena arena = {0};
  idx n = r->n, p = r->p;
  float *values, *sum;
  real *wide;
  int status = arena_alloc(&arena, &values, n, sizeof *values);
  if (!status) status = arena_alloc(&arena, &sum, p, sizeof *sum);
  if (!status) status = arena_alloc(&arena, &wide, p, sizeof *wide);
  for (idx j = 0; j < m && !status; j++) {
    float *direction = directions + (gidx)j * p;
    for (int step = 0; step <= GROW_STEPS; step++) {
      for (idx i = 0; i < n; i++) values[i] = find_score(r->rows + (gidx)i * p, direction, p);
      threshold[j] = grow_cut(values, n, r->rank);
      if (step == GROW_STEPS) break;
      const struct triad_gradient g = {values, r->rows, sum, 1, p, p, n, 1, p};
      memset(sum, 0, (size_t)p * sizeof *sum);
      triad_gradient(&g);
      for (idx c = 0; c < p; c++) wide[c] = sum[c];
      find_scale(wide, p, direction);
    }
  }
  arena_free(&arena);
  return status;
}

void rows_about_mean(float *rows, idx n, idx p)
{
  for (idx c = 0; c < p; c++) {
    real sum = 0;
    for (idx i = 0; i < n; i++) sum += rows[(gidx)i * p + c];
    for (idx i = 0; i < n; i++) {
      float *at = rows + (gidx)i * p + c;
      *at = (float)(*at - sum / n);
    }
  }
}

struct rated {
  float threshold;
  idx at;
};

static int rated_compare(const void *left, const void *right)
{
  const struct rated *a = left, *b = right;
  if (a->threshold != b->threshold) return a->threshold > b->threshold ? -1 : 1;
  return (a->at > b->at) - (a->at < b->at);
}

int grow_order(const float *threshold, idx m, idx *order)
{
  struct rated *list = malloc((size_t)m * sizeof *list);
  CHECK(list || m == 0, ERR_MEMORY, "cannot sort %d directions", m);
  for (idx j = 0; j < m; j++) list[j] = (struct rated){threshold[j], j};
  if (m) qsort(list, (size_t)m, sizeof *list, rated_compare);
  for (idx j = 0; j < m; j++) order[j] = list[j].at;
  free(list);
  return OK;
}

void grow_choose_reference(const float *directions, idx m, idx p, const float *atoms, idx k,
                           idx need, idx *chosen)
{
  idx n = 0;
  for (int others = 0; others < 2; others++)
    for (idx j = 0; j < m && n < need; j++) {
      const float *v = directions + (gidx)j * p;
      int is_near = 0, is_chosen = 0;
      for (idx a = 0; a < k && !others; a++)
        is_near |= find_score(v, atoms + (gidx)a * p, p) > GROW_COSINE;
      for (idx i = 0; i < n; i++) {
        is_chosen |= chosen[i] == j;
        if (!others) is_near |= find_score(v, directions + (gidx)chosen[i] * p, p) > GROW_COSINE;
      }
      if (!is_chosen && !is_near) chosen[n++] = j;
    }
}
