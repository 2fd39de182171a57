/* SPDX-License-Identifier: BSD-3-Clause
 * Every rank gets the residuals of the first rows of the batch.  A rank improves its share of the
 * directions, some at a time, by dense products.  Then all ranks choose the same new atoms. */
#include "find/grow.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "device/triad.h"
#include "find/renew.h"
#include "model/find_grow.h"

enum {
  TOGETHER = 1024, /* directions that improve at a time */
  RATED = 256,     /* directions that are compared with atoms at a time */
  /* columns of products that a thread cuts together, since they share cache lines */
  COLUMNS = 16
};
static const gidx ITEM = (gidx)sizeof(float);

/* The largest number of new atoms of a stage. */
static idx need_most(const struct find_plan *plan)
{
  idx most = 0;
  for (int b = 0; b < plan->stages.count; b++)
    most = (idx)imax(most, plan->stages.end[b] - (b ? plan->stages.end[b - 1] : 0));
  return most;
}

int grow_open(struct finder *f)
{
  struct find_growth *g = &f->growth;
  struct device *dev = &f->device;
  idx n = g->most_n = (idx)imin(f->plan.batch, GROW_ROWS), need = need_most(&f->plan);
  idx m = g->most_m = grow_candidates(need, n);
  gidx some = g->most_together = (idx)imin(TOGETHER, m), known = (gidx)f->plan.grown + m;
  gidx p = f->p;
  TRY(buffer_alloc(dev, &g->rows, n * p * ITEM));
  TRY(buffer_alloc(dev, &g->directions, m * p * ITEM));
  TRY(buffer_alloc(dev, &g->table, known * p * ITEM));
  TRY(buffer_alloc(dev, &g->values, imax(some * n, imin(RATED, m) * known) * ITEM));
  TRY(buffer_alloc(dev, &g->sums, some * p * ITEM));
  TRY(arena_alloc(&f->arena, &g->column, some * n, sizeof *g->column));
  TRY(arena_alloc(&f->arena, &g->wide, some * p, sizeof *g->wide));
  TRY(arena_alloc(&f->arena, &g->threshold, m, sizeof *g->threshold));
  TRY(arena_alloc(&f->arena, &g->order, m, sizeof *g->order));
  return arena_alloc(&f->arena, &g->state, m, 1);
}

void grow_close(struct finder *f)
{
  struct find_growth *g = &f->growth;
  struct buffer *const all[] = {&g->rows, &g->directions, &g->table, &g->values, &g->sums};
  for (int i = 0; i < LENGTH(all); i++) buffer_free(&f->device, all[i]);
}

/* values[n][m] <- products of n rows of one table with m rows of another. */
static int products_make(struct finder *f, const float *x, idx n, const float *y, idx m)
{
  struct find_growth *g = &f->growth;
  const struct triad_product product = {x, {y, 1, f->p}, NULL, g->values.device, f->p, m,
                                        n, f->p,         m};
  return device_triad_product(&f->device, PRECISION_F32, &product, NULL);
}

/* Cut the products of some directions by grow_cut(), each direction at its own threshold.  Each
 * direction is a column. */
static void columns_cut(void *self, gidx part)
{
  struct finder *f = self;
  struct find_growth *g = &f->growth;
  gidx n = g->n, stride = g->together, begin = part * COLUMNS, end = imin(begin + COLUMNS, stride);
  float *values = g->values.host;
  for (gidx i = 0; i < n; i++)
    for (gidx j = begin; j < end; j++) g->column[j * n + i] = values[i * stride + j];
  for (gidx j = begin; j < end; j++)
    g->threshold[g->first + j] = grow_cut(g->column + j * n, g->n, g->rank);
  for (gidx i = 0; i < n; i++)
    for (gidx j = begin; j < end; j++) values[i * stride + j] = g->column[j * n + i];
}

/* Direction number `direction`, one of the current ones, <- from[p] scaled to norm 1. */
static void direction_scale(struct finder *f, gidx direction, const float *from)
{
  struct find_growth *g = &f->growth;
  real *wide = g->wide + (direction - g->first) * f->p;
  for (idx c = 0; c < f->p; c++) wide[c] = from[c];
  find_scale(wide, f->p, (float *)g->directions.host + direction * f->p);
}

static void sum_scale(void *self, gidx j)
{
  struct finder *f = self;
  const struct find_growth *g = &f->growth;
  direction_scale(f, g->first + j, (const float *)g->sums.host + j * f->p);
}

/* Directions g->first .. g->first + g->together - 1 take one step; is_last: only their thresholds
 * are computed. */
static int directions_step(struct finder *f, int is_last)
{
  struct find_growth *g = &f->growth;
  gidx p = f->p, m = g->together, bytes = (gidx)g->n * m * ITEM;
  TRY(device_put(&f->device, &g->directions, g->first * p * ITEM, m * p * ITEM));
  TRY(products_make(f, g->rows.device, g->n, (float *)g->directions.device + g->first * p, (idx)m));
  TRY(device_get(&f->device, &g->values, 0, bytes));
  team_run(f->task->threads, ceil_div(m, COLUMNS), columns_cut, f);
  if (is_last) return OK;
  TRY(device_put(&f->device, &g->values, 0, bytes));
  TRY(device_clear(&f->device, &g->sums, 0, m * p * ITEM));
  const struct triad_gradient sum = {
      g->values.device, g->rows.device, g->sums.device, m, p, p, g->n, (idx)m, f->p};
  TRY(device_triad_gradient(&f->device, PRECISION_F32, &sum, NULL));
  TRY(device_get(&f->device, &g->sums, 0, m * p * ITEM));
  team_run(f->task->threads, m, sum_scale, f);
  return OK;
}

/* Improve this rank's directions. */
static int directions_improve(struct finder *f, gidx first, gidx count)
{
  struct find_growth *g = &f->growth;
  for (gidx at = first; at < first + count; at += g->together) {
    g->first = at;
    g->together = (idx)imin(g->most_together, first + count - at);
    for (int step = 0; step <= GROW_STEPS; step++) TRY(directions_step(f, step == GROW_STEPS));
  }
  return OK;
}

/* Gather on all ranks the residuals of the first rows of the batch.  Before there are atoms, these
 * are the rows themselves, less their mean. */
static int rows_gather(struct finder *f)
{
  struct find_growth *g = &f->growth;
  struct comm *c = f->c;
  gidx first = 0, count = 0;
  g->n = (idx)imin(f->codes.n, g->most_n);
  for (int r = 0; r < c->size; r++) {
    gidx own_first, own, end;
    comm_partition(f->codes.n, c->size, r, &own_first, &own);
    end = imin(g->n, own_first + own);
    f->counts[r] = (idx)imax(0, end - own_first);
    if (r == c->rank) first = own_first, count = f->counts[r];
  }
  float *rows = g->rows.host;
  if (!comm_failure(c)) comm_record(c, left_get(f, first, count, rows + first * f->p));
  TRY(comm_allgather(c, rows + imin(first, g->n) * f->p, f->counts, (size_t)(f->p * ITEM), rows));
  if (f->k == 0) rows_about_mean(rows, g->n, f->p);
  if (!comm_failure(c))
    comm_record(c, device_put(&f->device, &g->rows, 0, (gidx)g->n * f->p * ITEM));
  return OK;
}

static void row_scale(void *self, gidx j)
{
  struct finder *f = self;
  const struct find_growth *g = &f->growth;
  direction_scale(f, g->first + j, (const float *)g->rows.host + (g->first + j) * f->p);
}

/* The m directions begin as the first rows, scaled to norm 1.  Directions without such a row, or
 * whose row is 0, begin as random vectors. */
static void directions_begin(struct finder *f, idx m)
{
  struct find_growth *g = &f->growth;
  float *v = g->directions.host;
  gidx rows = imin(m, g->n), n;
  memset(v, 0, (size_t)((gidx)m * f->p * ITEM));
  for (g->first = 0; g->first < rows; g->first += n) {
    n = imin(g->most_together, rows - g->first);
    team_run(f->task->threads, n, row_scale, f);
  }
  for (gidx j = 0; j < m; j++)
    if (!atom_is_there(v + j * f->p, f->p)) atom_draw(f, j, v + j * f->p);
}

/* Gather the directions and thresholds of all ranks. */
static int directions_gather(struct finder *f, idx m)
{
  struct find_growth *g = &f->growth;
  struct comm *c = f->c;
  gidx first, count;
  for (int r = 0; r < c->size; r++) {
    comm_partition(m, c->size, r, &first, &count);
    f->counts[r] = (idx)count;
  }
  comm_partition(m, c->size, c->rank, &first, &count);
  float *v = g->directions.host;
  TRY(comm_allgather(c, v + first * f->p, f->counts, (size_t)(f->p * ITEM), v));
  return comm_allgather(c, g->threshold + first, f->counts, sizeof *g->threshold, g->threshold);
}

/* Test directions at .. at + n - 1 in order.  The table has the atoms, then the accepted
 * directions, then these.  A direction is accepted if its cosine with each atom, and with each
 * accepted direction before it, is at most GROW_COSINE.  *taken: the number of accepted directions
 * so far. */
static int some_choose(struct finder *f, idx at, idx n, idx need, idx *taken)
{
  struct find_growth *g = &f->growth;
  idx k = f->k, tail = k + *taken;
  gidx p = f->p;
  float *table = g->table.host;
  const float *v = (const float *)g->directions.host;
  for (idx i = 0; i < n; i++)
    memcpy(table + (gidx)(tail + i) * p, v + (gidx)g->order[at + i] * p, (size_t)(p * ITEM));
  TRY(device_put(&f->device, &g->table, g->known * p * ITEM, (tail + n - g->known) * p * ITEM));
  g->known = tail;
  const float *from = g->table.device;
  TRY(products_make(f, from + tail * p, n, from, tail + n));
  TRY(device_get(&f->device, &g->values, 0, (gidx)n * (tail + n) * ITEM));
  for (idx i = 0; i < n && *taken < need; i++) {
    const float *cosine = (const float *)g->values.host + (gidx)i * (tail + n);
    int is_near = 0;
    for (idx b = 0; b < tail; b++) is_near |= cosine[b] > GROW_COSINE;
    for (idx b = 0; b < i; b++) is_near |= g->state[at + b] && cosine[tail + b] > GROW_COSINE;
    g->state[at + i] = !is_near;
    *taken += !is_near;
  }
  idx to = tail;
  for (idx i = 0; i < n; i++)
    if (g->state[at + i])
      memmove(table + (gidx)to++ * p, table + (gidx)(tail + i) * p, (size_t)(p * ITEM));
  return OK;
}

/* Choose new atoms: accepted directions, then others if these are too few.  The new atoms are
 * appended to the atoms in the table. */
static int directions_choose(struct finder *f, idx m, idx need)
{
  struct find_growth *g = &f->growth;
  gidx p = f->p;
  idx taken = 0;
  float *table = g->table.host;
  memcpy(table, f->atoms, (size_t)(f->k * p * ITEM));
  memset(g->state, 0, (size_t)m);
  g->known = 0;
  TRY(grow_order(g->threshold, m, g->order));
  for (idx at = 0, n; at < m && taken < need; at += n) {
    n = (idx)imin(RATED, m - at);
    TRY(some_choose(f, at, n, need, &taken));
  }
  const float *v = g->directions.host;
  for (idx j = 0; j < m && taken < need; j++)
    if (!g->state[j])
      memcpy(table + (gidx)(f->k + taken++) * p, v + (gidx)g->order[j] * p, (size_t)(p * ITEM));
  return OK;
}

int atoms_grow(struct finder *f, idx k)
{
  struct find_growth *g = &f->growth;
  struct phase *grow = &f->result->phases[FIND_GROW];
  idx need = k - f->k, m;
  gidx first, count, p = f->p;
  if (need <= 0) return OK;
  phase_begin(grow);
  TRY(rows_gather(f));
  m = grow_candidates(need, g->n);
  g->rank = grow_rank(g->n, k);
  directions_begin(f, m);
  comm_partition(m, f->c->size, f->c->rank, &first, &count);
  if (!comm_failure(f->c)) comm_record(f->c, directions_improve(f, first, count));
  TRY(directions_gather(f, m));
  if (!comm_failure(f->c)) comm_record(f->c, directions_choose(f, m, need));
  for (idx a = f->k; a < k; a++) atom_begin(f, a, (float *)g->table.host + a * p);
  f->k = k;
  phase_end(grow, 0);
  return comm_agree(f->c, OK);
}
