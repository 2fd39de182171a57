/* SPDX-License-Identifier: BSD-3-Clause
 * Row reduction, then shortest paths with a heap.  A column that is reached again on a shorter path
 * is in the heap twice; the longer entry is skipped. */
#include "model/assignment_paths.h"

#include <stdlib.h>

#include "base/status.h"

enum { REDUCTIONS = 4 }; /* how many times each row without a column tries to take one */

struct place {
  gidx distance;
  idx column;
};

struct paths {
  struct assignment *a;
  const struct lists *lists;
  gidx *distance; /* [l] */
  idx *before;    /* [l] column whose row the path came from, -1: the new row */
  idx *final;     /* [l] columns whose distance is final, in that order */
  idx n_final;
  idx *seen; /* [l] 1 + the last row whose search reached it */
  struct place *heap;
  gidx n_heap, room;
  idx *waiting; /* [k] rows without a column */
};

static int heap_push(struct paths *w, gidx distance, idx column)
{
  if (w->n_heap == w->room) {
    gidx room = 2 * w->room + 1024;
    struct place *heap = realloc(w->heap, (size_t)room * sizeof *heap);
    CHECK(heap, ERR_MEMORY, "cannot allocate %lld entries of shortest paths", (long long)room);
    w->heap = heap;
    w->room = room;
  }
  gidx at = w->n_heap++;
  for (; at > 0 && w->heap[(at - 1) / 2].distance > distance; at = (at - 1) / 2)
    w->heap[at] = w->heap[(at - 1) / 2];
  w->heap[at] = (struct place){distance, column};
  return OK;
}

static struct place heap_pop(struct paths *w)
{
  struct place top = w->heap[0], last = w->heap[--w->n_heap];
  gidx at = 0;
  for (gidx child; (child = 2 * at + 1) < w->n_heap; at = child) {
    if (child + 1 < w->n_heap && w->heap[child + 1].distance < w->heap[child].distance) child++;
    if (w->heap[child].distance >= last.distance) break;
    w->heap[at] = w->heap[child];
  }
  w->heap[at] = last;
  return top;
}

/* The best column of a row; *next <- the value of the next best. */
static idx row_best(const struct paths *w, idx i, gidx *next)
{
  const struct list *list = w->lists->row + i;
  gidx best = INT64_MAX;
  idx column = -1;
  *next = INT64_MAX;
  for (idx n = 0; n < list->count; n++) {
    gidx value = list->cost[n] - w->a->v[list->column[n]];
    if (value < best) {
      *next = best;
      best = value;
      column = list->column[n];
    } else if (value < *next && list->column[n] != column) {
      *next = value;
    }
  }
  w->a->u[i] = best;
  return column;
}

/* Row i takes its best column, at a price that makes the next best as good.  Returns the row that
 * loses this column, -1: none.  If another row has the column, and the next best is as good
 * already, row i takes none and is returned itself. */
static idx row_reduce(struct paths *w, idx i)
{
  struct assignment *a = w->a;
  gidx next;
  idx j = row_best(w, i, &next), had = a->owner[j];
  if (had >= 0 && next == a->u[i]) return i;
  if (next != INT64_MAX) {
    a->v[j] -= next - a->u[i];
    a->u[i] = next;
  }
  if (had >= 0) a->match[had] = -1;
  a->match[i] = j;
  a->owner[j] = i;
  return had;
}

static void rows_reduce(struct paths *w)
{
  idx k = w->a->k, count = k;
  for (idx i = 0; i < k; i++) w->waiting[i] = i;
  for (int pass = 0; pass < REDUCTIONS; pass++) {
    idx left = 0;
    for (idx n = 0; n < count; n++) {
      idx had = row_reduce(w, w->waiting[n]);
      if (had >= 0) w->waiting[left++] = had;
    }
    count = left;
  }
}

static int row_leave(struct paths *w, idx row, idx i, gidx base, idx before)
{
  const struct assignment *a = w->a;
  const struct list *list = w->lists->row + i;
  for (idx n = 0; n < list->count; n++) {
    idx j = list->column[n];
    gidx distance = base + list->cost[n] - a->u[i] - a->v[j];
    if (w->seen[j] == row + 1 && distance >= w->distance[j]) continue;
    w->seen[j] = row + 1;
    w->distance[j] = distance;
    w->before[j] = before;
    TRY(heap_push(w, distance, j));
  }
  return OK;
}

/* *end <- the free column that is nearest to the row. */
static int path_find(struct paths *w, idx row, idx *end)
{
  const struct assignment *a = w->a;
  gidx unused;
  row_best(w, row, &unused);
  w->n_heap = w->n_final = 0;
  TRY(row_leave(w, row, row, 0, -1));
  for (;;) {
    CHECK(w->n_heap, ERR_INTERNAL, "row %d of an assignment reaches no free column", row);
    struct place p = heap_pop(w);
    if (p.distance > w->distance[p.column]) continue;
    *end = p.column;
    if (a->owner[p.column] < 0) return OK;
    w->final[w->n_final++] = p.column;
    TRY(row_leave(w, row, a->owner[p.column], p.distance, p.column));
  }
}

static void path_take(struct paths *w, idx row, idx end)
{
  struct assignment *a = w->a;
  gidx length = w->distance[end];
  a->u[row] += length;
  for (idx n = 0; n < w->n_final; n++) {
    idx j = w->final[n];
    a->u[a->owner[j]] += length - w->distance[j];
    a->v[j] -= length - w->distance[j];
  }
  for (idx j = end, before; j >= 0; j = before) {
    before = w->before[j];
    a->owner[j] = before < 0 ? row : a->owner[before];
    a->match[a->owner[j]] = j;
  }
}

static int work_alloc(struct arena *arena, struct paths *w)
{
  idx k = w->a->k, l = w->a->l;
  TRY(arena_alloc(arena, &w->distance, l, sizeof *w->distance));
  TRY(arena_alloc(arena, &w->before, l, sizeof *w->before));
  TRY(arena_alloc(arena, &w->final, l, sizeof *w->final));
  TRY(arena_alloc(arena, &w->seen, l, sizeof *w->seen));
  return arena_alloc(arena, &w->waiting, k, sizeof *w->waiting);
}

static int rows_match(struct paths *w)
{
  rows_reduce(w);
  for (idx i = 0; i < w->a->k; i++) {
    idx end = -1;
    if (w->a->match[i] >= 0) continue;
    TRY(path_find(w, i, &end));
    path_take(w, i, end);
  }
  return OK;
}

int paths_match(struct assignment *a, const struct lists *lists)
{
  struct arena arena = {0};
  struct paths w = {.a = a, .lists = lists};
  int status = work_alloc(&arena, &w);
  if (!status) status = rows_match(&w);
  free(w.heap);
  arena_free(&arena);
  return status;
}
