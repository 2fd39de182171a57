/* SPDX-License-Identifier: BSD-3-Clause
 * S^-1 = Z'Z is made in panels of whole atoms: the columns of these atoms, from the first border of
 * the panel down.  The blocks of atoms are read from a panel.  For pairs of atoms only the
 * strengths are computed from it.  Later the blocks of the strongest pairs are computed entry by
 * entry. */
#include "terminal/covariance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"

enum { PANEL_COLUMNS = 512 };

struct panel {
  struct terminal *w;
  struct buffer c;   /* [columns][n - begin] of S^-1 */
  idx begin, end;    /* first border of the panel, and the border after its last one */
  struct cross *top; /* [2 cross] candidates, pruned to the strongest when full */
  idx count;
};

/* Entry (i, j) of phi S^-1.  The smaller of i and j is a column of the panel. */
static real panel_entry(const struct panel *q, idx i, idx j)
{
  const struct terminal_result *r = q->w->r;
  idx low = i < j ? i : j, high = i < j ? j : i;
  const real *c = q->c.host;
  return r->phi * c[high - q->begin + (low - q->begin) * (gidx)(r->n_border - q->begin)];
}

/* The Frobenius norm of a pair's block: a chain of squares, column after column. */
static real pair_strength(const struct panel *q, idx first, idx second)
{
  const idx *border = q->w->r->border;
  real acc = 0;
  for (idx j = border[second]; j < border[second + 1]; j++)
    for (idx i = border[first]; i < border[first + 1]; i++) {
      real x = panel_entry(q, i, j);
      acc = fma(x, x, acc);
    }
  return sqrt(acc);
}

static int cross_compare(const void *a, const void *b)
{
  return cross_before(a, b) ? -1 : cross_before(b, a);
}

static void top_prune(struct panel *q)
{
  idx max = q->w->t->cross;
  qsort(q->top, (size_t)q->count, sizeof *q->top, cross_compare);
  if (q->count > max) q->count = max;
}

/* Read the block of atom a, and its strengths with all atoms after it. */
static void atom_read(struct panel *q, idx a)
{
  struct terminal_result *r = q->w->r;
  real *block = r->covariance + (gidx)a * r->max_k * r->max_k;
  for (idx i = r->border[a]; i < r->border[a + 1]; i++)
    for (idx j = r->border[a]; j < r->border[a + 1]; j++)
      block[(gidx)(i - r->border[a]) * r->max_k + j - r->border[a]] = panel_entry(q, i, j);
  if (r->border[a] == r->border[a + 1] || q->w->t->cross == 0) return;
  for (idx b = a + 1; b < r->k; b++) {
    if (r->border[b] == r->border[b + 1]) continue;
    q->top[q->count++] = (struct cross){pair_strength(q, a, b), a, b};
    if (q->count == 2 * q->w->t->cross) top_prune(q);
  }
}

/* Make the panel that begins with atom `first`; *next <- the atom after its last one. */
static int panel_run(struct panel *q, idx first, idx columns, idx *next)
{
  struct terminal *w = q->w;
  const idx *border = w->r->border;
  idx last = first + 1, n = w->r->n_border;
  while (last < w->r->k && border[last + 1] - border[first] <= columns) last++;
  q->begin = border[first];
  q->end = border[last];
  gidx stride = n - q->begin, bytes = stride * (q->end - q->begin) * (gidx)sizeof(real);
  struct dense_operand z = {w->s.device, schur_stride(w), 1, 0, 1};
  struct dense_product p = {z,        z, q->begin,    n,      q->begin,  q->end,
                            q->begin, n, q->c.device, stride, PART_LOWER};
  TRY(device_clear(&w->device, &q->c, 0, bytes));
  TRY(dense_product(&w->dense, &p));
  TRY(device_get(&w->device, &q->c, 0, bytes));
  for (idx a = first; a < last; a++) atom_read(q, a);
  *next = last;
  return OK;
}

/* Entries of the strongest pairs that are computed together: the two borders of each entry, and its
 * place in cross_blocks. */
enum { ENTRIES_AT_ONCE = 1 << 15 };
struct entries {
  struct terminal *w;
  idx pairs[ENTRIES_AT_ONCE][2];
  gidx place[ENTRIES_AT_ONCE];
  real out[ENTRIES_AT_ONCE];
  gidx count;
};

static int entries_make(struct entries *e)
{
  struct terminal_result *r = e->w->r;
  struct dense_entries job = {e->w->s.device, r->n_border, schur_stride(e->w),
                              e->count,       e->pairs[0], e->out};
  TRY(dense_entries(&e->w->dense, &job));
  for (gidx i = 0; i < e->count; i++) r->cross_blocks[e->place[i]] = r->phi * e->out[i];
  e->count = 0;
  return OK;
}

/* Add the entries of the block of pair number c: rows are the first atom's borders, columns the
 * second's. */
static int pair_block(struct entries *e, idx c)
{
  const struct terminal_result *r = e->w->r;
  idx first = r->border[r->cross[c].first], second = r->border[r->cross[c].second];
  for (idx i = first; i < r->border[r->cross[c].first + 1]; i++)
    for (idx j = second; j < r->border[r->cross[c].second + 1]; j++) {
      if (e->count == ENTRIES_AT_ONCE) TRY(entries_make(e));
      e->pairs[e->count][0] = i;
      e->pairs[e->count][1] = j;
      e->place[e->count++] = ((gidx)c * r->max_k + i - first) * r->max_k + j - second;
    }
  return OK;
}

/* Make the blocks of the strongest pairs. */
static int pairs_make(struct terminal *w)
{
  struct arena arena = {0};
  struct entries *e = NULL;
  TRY(arena_alloc(&arena, &e, 1, sizeof *e));
  e->w = w;
  e->count = 0;
  for (idx c = 0; c < w->r->n_cross; c++) TRY(pair_block(e, c));
  TRY(entries_make(e));
  arena_free(&arena);
  return OK;
}

int terminal_covariance_alloc(struct terminal *w)
{
  struct terminal_result *r = w->r;
  gidx block = (gidx)r->max_k * r->max_k;
  TRY(arena_alloc(&r->arena, &r->covariance, r->k * block, sizeof(real)));
  TRY(arena_alloc(&r->arena, &r->cross, w->t->cross, sizeof *r->cross));
  return arena_alloc(&r->arena, &r->cross_blocks, w->t->cross * block, sizeof(real));
}

/* Allocate the results and pad them with NaN. */
static int results_begin(struct terminal *w)
{
  struct terminal_result *r = w->r;
  gidx block = (gidx)r->max_k * r->max_k;
  TRY(terminal_covariance_alloc(w));
  for (gidx i = 0; i < r->k * block; i++) r->covariance[i] = nan_canonical();
  for (gidx i = 0; i < w->t->cross * block; i++) r->cross_blocks[i] = nan_canonical();
  return OK;
}

static idx panel_columns(const struct terminal *w)
{
  const struct terminal_result *r = w->r;
  gidx fit = w->t->workspace / (2 * (gidx)sizeof(real) * (r->n_border + 1));
  return fit > PANEL_COLUMNS ? PANEL_COLUMNS : fit < r->max_k ? r->max_k : (idx)fit;
}

gidx terminal_panel_bytes(const struct terminal *w)
{
  return (gidx)panel_columns(w) * w->r->n_border * (gidx)sizeof(real);
}

int terminal_covariance(struct terminal *w)
{
  struct terminal_result *r = w->r;
  struct arena arena = {0};
  struct panel q = {.w = w};
  idx columns = panel_columns(w);
  TRY(results_begin(w));
  TRY(buffer_alloc(&w->device, &q.c, terminal_panel_bytes(w)));
  TRY(arena_alloc(&arena, &q.top, 2 * (gidx)w->t->cross, sizeof *q.top));
  for (idx a = 0; a < r->k;) TRY(panel_run(&q, a, columns, &a));
  top_prune(&q);
  r->n_cross = q.count;
  for (idx i = 0; i < q.count; i++) r->cross[i] = q.top[i];
  buffer_free(&w->device, &q.c);
  arena_free(&arena);
  TRY(pairs_make(w));
  return OK;
}
