/* SPDX-License-Identifier: BSD-3-Clause
 * The best columns of a row are kept in a heap while its scores are read. */
#include "model/assignment_lists.h"

#include <stdlib.h>

#include "base/num.h"
#include "base/status.h"
#include "base/team.h"

enum { AT_ONCE = 32 }; /* columns that join a list at a time */

/* The best columns of a row so far: a heap with the worst of them at its root. */
struct best {
  idx count;
  gidx value[AT_ONCE]; /* the cost minus the dual variable v of the column */
  idx column[AT_ONCE];
};

static void best_sink(struct best *b, gidx value, idx column)
{
  idx at = 0;
  for (idx child; (child = 2 * at + 1) < b->count; at = child) {
    if (child + 1 < b->count && b->value[child + 1] > b->value[child]) child++;
    if (b->value[child] <= value) break;
    b->value[at] = b->value[child];
    b->column[at] = b->column[child];
  }
  b->value[at] = value;
  b->column[at] = column;
}

static void best_rise(struct best *b, gidx value, idx column)
{
  idx at = b->count++;
  for (; at > 0 && b->value[(at - 1) / 2] < value; at = (at - 1) / 2) {
    b->value[at] = b->value[(at - 1) / 2];
    b->column[at] = b->column[(at - 1) / 2];
  }
  b->value[at] = value;
  b->column[at] = column;
}

/* Find the best columns of row i whose value is below the bound. */
static void best_find(const struct assignment *a, idx i, gidx bound, struct best *b)
{
  b->count = 0;
  for (idx j = 0; j < a->l; j++) {
    gidx value = assignment_cost(a, i, j) - a->v[j];
    if (value >= bound) continue;
    if (b->count < AT_ONCE)
      best_rise(b, value, j);
    else
      best_sink(b, value, j);
    if (b->count == AT_ONCE) bound = b->value[0];
  }
}

static int list_reserve(struct list *list, idx more)
{
  if (list->count + more <= list->room) return 1;
  idx room = (idx)imax(2 * list->room, list->count + more);
  idx *column = realloc(list->column, (size_t)room * sizeof *column);
  if (column) list->column = column;
  gidx *cost = realloc(list->cost, (size_t)room * sizeof *cost);
  if (cost) list->cost = cost;
  if (column && cost) list->room = room;
  return column && cost;
}

static void list_add(const struct assignment *a, struct list *list, idx i, idx j)
{
  list->column[list->count] = j;
  list->cost[list->count++] = assignment_cost(a, i, j);
}

static void row_price(void *self, gidx i)
{
  struct lists *l = self;
  const struct assignment *a = l->a;
  struct list *list = l->row + i;
  struct best best;
  int is_first = list->count == 0;
  best_find(a, (idx)i, is_first ? INT64_MAX : a->u[i], &best);
  l->added[i] = best.count + is_first;
  if (!list_reserve(list, l->added[i])) {
    l->no_memory = 1;
    return;
  }
  if (is_first) list_add(a, list, (idx)i, (idx)i);
  for (idx n = 0; n < best.count; n++)
    if (!is_first || best.column[n] != i) list_add(a, list, (idx)i, best.column[n]);
}

int lists_price(struct lists *l, gidx *added)
{
  const struct assignment *a = l->a;
  if (!l->row) {
    TRY(arena_alloc(a->arena, &l->row, a->k, sizeof *l->row));
    TRY(arena_alloc(a->arena, &l->added, a->k, sizeof *l->added));
  }
  team_run(a->threads, a->k, row_price, l);
  CHECK(!l->no_memory, ERR_MEMORY, "cannot allocate the best columns of %d rows", a->k);
  *added = 0;
  for (idx i = 0; i < a->k; i++) *added += l->added[i];
  return OK;
}

void lists_free(struct lists *l)
{
  for (idx i = 0; l->row && i < l->a->k; i++) {
    free(l->row[i].column);
    free(l->row[i].cost);
  }
}
