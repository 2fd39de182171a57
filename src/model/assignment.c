/* SPDX-License-Identifier: BSD-3-Clause
 * The part that both solvers share.  Scores are rounded to integers, and a matrix with more rows
 * than columns is transposed.  Also the solver of assignment_reference(). */
#include "model/assignment.h"

#include <float.h>
#include <math.h>

#include "base/status.h"
#include "model/assignment_first.h"
#include "model/assignment_sparse.h"

enum { SCORE_BITS = 40 };

/* The state of a search for a shortest path. */
struct path {
  gidx *distance; /* [l] of columns, from the new row */
  idx *before;    /* [l] column whose row the path came from, -1: the new row */
  idx *order;     /* [l] columns whose distance is final, in that order */
  uint8_t *is_final;
  idx count;
};

static int path_alloc(struct arena *arena, idx l, struct path *w)
{
  TRY(arena_alloc(arena, &w->distance, l, sizeof *w->distance));
  TRY(arena_alloc(arena, &w->before, l, sizeof *w->before));
  TRY(arena_alloc(arena, &w->order, l, sizeof *w->order));
  return arena_alloc(arena, &w->is_final, l, sizeof *w->is_final);
}

/* Update distances from row i, which is `base` away; returns the nearest column that is not
 * final. */
static idx row_scan(const struct assignment *a, struct path *w, idx i, gidx base, idx before)
{
  idx nearest = -1;
  for (idx j = 0; j < a->l; j++) {
    if (w->is_final[j]) continue;
    gidx distance = base + assignment_cost(a, i, j) - a->u[i] - a->v[j];
    if (distance < w->distance[j]) {
      w->distance[j] = distance;
      w->before[j] = before;
    }
    if (nearest < 0 || w->distance[j] < w->distance[nearest]) nearest = j;
  }
  return nearest;
}

/* Find shortest paths from the row; returns the nearest free column. */
static idx path_find(const struct assignment *a, struct path *w, idx row)
{
  idx i = row, at = -1;
  w->count = 0;
  for (idx j = 0; j < a->l; j++) {
    w->is_final[j] = 0;
    w->distance[j] = INT64_MAX;
  }
  do {
    at = row_scan(a, w, i, at < 0 ? 0 : w->distance[at], at);
    w->is_final[at] = 1;
    w->order[w->count++] = at;
    i = a->owner[at];
  } while (i >= 0);
  return at;
}

/* Change the dual variables so that the path has no cost, then match along it. */
static void path_take(struct assignment *a, const struct path *w, idx row, idx end)
{
  gidx length = w->distance[end];
  a->u[row] += length;
  for (idx n = 0; n < w->count - 1; n++) {
    idx j = w->order[n];
    a->u[a->owner[j]] += length - w->distance[j];
    a->v[j] -= length - w->distance[j];
  }
  for (idx j = end, before; j >= 0; j = before) {
    before = w->before[j];
    a->owner[j] = before < 0 ? row : a->owner[before];
    a->match[a->owner[j]] = j;
  }
}

static int paths_solve(struct assignment *a)
{
  struct path w;
  TRY(path_alloc(a->arena, a->l, &w));
  for (idx i = 0; i < a->k; i++) path_take(a, &w, i, path_find(a, &w, i));
  return OK;
}

/* *scale <- the scale of struct assignment.  Its value does not matter if all scores are 0. */
static int scale_find(idx k, idx l, const float *scores, real *scale)
{
  float most = 0;
  int exponent = 0;
  for (gidx n = 0; n < (gidx)k * l; n++) {
    float size = fabsf(scores[n]);
    CHECK(size <= FLT_MAX, ERR_INPUT, "the score of row %d and column %d is not finite",
          (idx)(n / l), (idx)(n % l));
    if (size > most) most = size;
  }
  frexp((real)most, &exponent);
  *scale = ldexp(1, SCORE_BITS - exponent);
  return OK;
}

/* to[l][k] <- the transpose of from[k][l]. */
static void transpose(idx k, idx l, const float *from, float *to)
{
  enum { SIDE = 32 };
  for (idx i0 = 0; i0 < k; i0 += SIDE)
    for (idx j0 = 0; j0 < l; j0 += SIDE)
      for (idx i = i0; i < k && i < i0 + SIDE; i++)
        for (idx j = j0; j < l && j < j0 + SIDE; j++) to[(gidx)j * k + i] = from[(gidx)i * l + j];
}

/* Set the problem, transposed if it has more rows than columns, with nothing matched. */
static int problem_begin(struct assignment *a, idx k, idx l, const float *scores)
{
  a->scores = scores;
  if (k > l) {
    float *turned;
    TRY(arena_alloc(a->arena, &turned, (gidx)k * l, sizeof *turned));
    transpose(k, l, scores, turned);
    a->scores = turned;
  }
  a->k = k > l ? l : k;
  a->l = k > l ? k : l;
  TRY(arena_alloc(a->arena, &a->u, a->k, sizeof *a->u));
  TRY(arena_alloc(a->arena, &a->v, a->l, sizeof *a->v));
  TRY(arena_alloc(a->arena, &a->match, a->k, sizeof *a->match));
  TRY(arena_alloc(a->arena, &a->owner, a->l, sizeof *a->owner));
  for (idx i = 0; i < a->k; i++) a->match[i] = -1;
  for (idx j = 0; j < a->l; j++) a->owner[j] = -1;
  return OK;
}

static int problem_solve(struct assignment *a, idx k, idx l, const float *scores,
                         int (*solver)(struct assignment *a), idx *match)
{
  TRY(scale_find(k, l, scores, &a->scale));
  TRY(problem_begin(a, k, l, scores));
  TRY(solver(a));
  TRY(assignment_first(a));
  for (idx i = 0; i < k; i++) match[i] = k > l ? a->owner[i] : a->match[i];
  return OK;
}

static int assignment_run(idx k, idx l, const float *scores, int threads,
                          int (*solver)(struct assignment *a), idx *match)
{
  struct arena arena = {0};
  struct assignment a = {.threads = threads, .arena = &arena};
  for (idx i = 0; i < k; i++) match[i] = -1;
  if (k == 0 || l == 0) return OK;
  int status = problem_solve(&a, k, l, scores, solver, match);
  arena_free(&arena);
  return status;
}

int assignment_reference(idx k, idx l, const float *scores, idx *match)
{
  return assignment_run(k, l, scores, 1, paths_solve, match);
}

int assignment_solve(idx k, idx l, const float *scores, int threads, idx *match)
{
  return assignment_run(k, l, scores, threads, assignment_sparse, match);
}
