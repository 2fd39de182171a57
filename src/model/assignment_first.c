/* SPDX-License-Identifier: BSD-3-Clause
 * Of all optimal assignments find the first: each row in turn takes the lowest column such that the
 * remaining rows can still be assigned optimally.
 *
 * If dual variables prove one assignment optimal, the optimal assignments are exactly the matchings
 * of tight pairs (cost = u + v) in which every column with v < 0 has a row.  So a row may take a
 * lower tight column if an alternating path of tight pairs gives its own column to another row.
 * One more node of the search stands for all columns without a row.  This node may take any column
 * with v = 0. */
#include "model/assignment_first.h"

#include "base/status.h"
#include "base/team.h"

struct ties {
  struct assignment *a;
  gidx *start;       /* [k + 1] */
  idx *column;       /* [start[k]] tight columns of each row, ascending */
  uint8_t *is_wrong; /* [k] rows with a pair that violates the dual variables */
  /* State of a search: over rows and, as the last node, the node of free columns. */
  idx *seen;   /* [k + 1] 1 + the last search that reached the node */
  idx *before; /* [k + 1] node that wants its column */
  idx *wanted; /* [k + 1] the column of this node, which before[] wants */
  idx *stack;  /* [k + 1] */
  idx n_stack;
};

/* Count the tight columns of row i; out: store them, too. */
static gidx row_tight(struct ties *t, idx i, idx *out)
{
  const struct assignment *a = t->a;
  gidx count = 0;
  for (idx j = 0; j < a->l; j++) {
    gidx slack = assignment_cost(a, i, j) - a->u[i] - a->v[j];
    if (slack < 0 || (slack > 0 && j == a->match[i])) t->is_wrong[i] = 1;
    if (slack != 0) continue;
    if (out) out[count] = j;
    count++;
  }
  return count;
}

static void row_count(void *self, gidx i)
{
  struct ties *t = self;
  t->start[i + 1] = row_tight(t, (idx)i, NULL);
}

static void row_note(void *self, gidx i)
{
  struct ties *t = self;
  row_tight(t, (idx)i, t->column + t->start[i]);
}

/* Check the proof: if it holds, the assignment is optimal, whatever computed it. */
static int duals_check(const struct ties *t)
{
  const struct assignment *a = t->a;
  for (idx i = 0; i < a->k; i++)
    CHECK(a->match[i] >= 0 && a->owner[a->match[i]] == i && !t->is_wrong[i], ERR_INTERNAL,
          "the assignment of %d rows to %d columns is not proved optimal at row %d", a->k, a->l, i);
  for (idx j = 0; j < a->l && a->k < a->l; j++)
    CHECK(a->v[j] <= 0 && (a->v[j] == 0 || a->owner[j] >= 0), ERR_INTERNAL,
          "the assignment of %d rows to %d columns is not proved optimal at column %d", a->k, a->l,
          j);
  return OK;
}

static int ties_find(struct ties *t)
{
  struct assignment *a = t->a;
  TRY(arena_alloc(a->arena, &t->start, a->k + 1, sizeof *t->start));
  TRY(arena_alloc(a->arena, &t->is_wrong, a->k, sizeof *t->is_wrong));
  team_run(a->threads, a->k, row_count, t);
  TRY(duals_check(t));
  for (idx i = 0; i < a->k; i++) t->start[i + 1] += t->start[i];
  TRY(arena_alloc(a->arena, &t->column, t->start[a->k], sizeof *t->column));
  team_run(a->threads, a->k, row_note, t);
  TRY(arena_alloc(a->arena, &t->seen, a->k + 1, sizeof *t->seen));
  TRY(arena_alloc(a->arena, &t->before, a->k + 1, sizeof *t->before));
  TRY(arena_alloc(a->arena, &t->wanted, a->k + 1, sizeof *t->wanted));
  return arena_alloc(a->arena, &t->stack, a->k + 1, sizeof *t->stack);
}

/* Reach the node that has the column, in the search of row i; rows before i keep their
 * columns, and row i is where the search began. */
static void node_come(struct ties *t, idx i, idx before, idx column)
{
  idx owner = t->a->owner[column], node = owner < 0 ? t->a->k : owner;
  if (node <= i || t->seen[node] == i + 1) return;
  t->seen[node] = i + 1;
  t->before[node] = before;
  t->wanted[node] = column;
  t->stack[t->n_stack++] = node;
}

/* Visit the columns that the node may take; returns 1 if row i's column is among them. */
static int node_leave(struct ties *t, idx i, idx node)
{
  const struct assignment *a = t->a;
  idx own = a->match[i];
  if (node == a->k) {
    if (a->v[own] == 0) return 1;
    for (idx b = i + 1; b < a->k; b++)
      if (a->v[a->match[b]] == 0) node_come(t, i, node, a->match[b]);
    return 0;
  }
  for (gidx e = t->start[node]; e < t->start[node + 1]; e++) {
    if (t->column[e] == own) return 1;
    node_come(t, i, node, t->column[e]);
  }
  return 0;
}

/* Assign along the path: the last node takes the column of row i; every other node takes the column
 * of the node after it on the path. */
static void path_take(struct ties *t, idx i, idx last)
{
  struct assignment *a = t->a;
  idx column = a->match[i];
  for (idx node = last;; node = t->before[node]) {
    idx left = node == i ? -1 : t->wanted[node];
    a->owner[column] = node == a->k ? -1 : node;
    if (node < a->k) a->match[node] = column;
    if (node == i) return;
    column = left;
  }
}

/* Give row i the column if that is possible.  Nodes that an earlier search for this row reached
 * lead nowhere, and are not visited again. */
static int column_take(struct ties *t, idx i, idx column)
{
  t->n_stack = 0;
  node_come(t, i, i, column);
  while (t->n_stack) {
    idx node = t->stack[--t->n_stack];
    if (!node_leave(t, i, node)) continue;
    path_take(t, i, node);
    return 1;
  }
  return 0;
}

int assignment_first(struct assignment *a)
{
  struct ties t = {.a = a};
  TRY(ties_find(&t));
  for (idx i = 0; i < a->k; i++)
    for (gidx e = t.start[i]; e < t.start[i + 1] && t.column[e] < a->match[i]; e++)
      if (column_take(&t, i, t.column[e])) break;
  return OK;
}
