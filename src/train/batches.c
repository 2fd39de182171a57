/* SPDX-License-Identifier: BSD-3-Clause
 * A pool's windows are shared out as they follow each other; an exchange gives each rank all.  The
 * order of the pool that is read ahead is a shuffle of its own. */
#include "train/batches.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "model/access.h"
#include "model/identity.h"
#include "model/train.h"

/* How many rows of a pool this rank reads at most: whole windows. */
static gidx share_rows(const struct batches *b)
{
  gidx windows = ceil_div(SHUFFLE_POOL, b->c->size);
  return imin(b->rows->n, windows * SHUFFLE_WINDOW);
}

int batches_alloc(struct batches *b, struct arena *arena, uint64_t seed)
{
  gidx rows = imin(b->rows->n, SHUFFLE_ROWS), p = b->rows->p;
  TRY(shuffle_init(&b->shuffle, arena, b->rows->n, seed));
  TRY(shuffle_init(&b->ahead, arena, b->rows->n, seed));
  TRY(arena_alloc(arena, &b->pool, rows * p, sizeof *b->pool));
  TRY(arena_alloc(arena, &b->share, share_rows(b) * p, sizeof *b->share));
  return arena_alloc(arena, &b->counts, b->c->size, sizeof *b->counts);
}

int batches_open(struct batches *b)
{
  return worker_open(&b->worker);
}

void batches_close(struct batches *b)
{
  worker_close(&b->worker);
}

void batches_rest(struct batches *b)
{
  if (!b->is_busy) return;
  b->status = worker_wait(&b->worker);
  snprintf(b->why, sizeof b->why, "%s", b->status ? status_message() : "");
  status_clear();
  b->is_busy = 0;
}

/* The thread: own windows of the pool to b->share, one behind the other. */
static int windows_read(void *self)
{
  struct batches *b = self;
  idx p = b->rows->p, n;
  float *x = b->share;
  for (idx w = b->window; w < b->window_end; w++, x += (gidx)n * p) {
    shuffle_window(&b->ahead, w, &b->key, &n);
    TRY(b->rows->read(b->rows->self, b->key, n, x));
    TRY(rows_source_check(b->rows, x, b->key, n));
    rows_center(x, n, p, b->mean);
    for (gidx i = 0; i < (gidx)n * p; i++) x[i] = ldexpf(x[i], b->scale);
    TRY(rows_source_check(b->rows, x, b->key, n));
  }
  return OK;
}

/* Begin to read the pool that has this position. */
static int ahead_begin(struct batches *b, gidx epoch, gidx row)
{
  gidx first, count;
  idx skip;
  shuffle_take(&b->ahead, epoch, row, &skip);
  comm_share(shuffle_windows(&b->ahead), b->c->size, b->c->rank, &first, &count);
  b->window = (idx)first;
  b->window_end = (idx)(first + count);
  b->key = 0;
  TRY(worker_start(&b->worker, windows_read, b));
  b->is_busy = b->is_ahead = 1;
  return OK;
}

/* Rows of the pool that each rank has read. */
static void shares_count(struct batches *b)
{
  const struct shuffle *s = &b->ahead;
  gidx first, count, row;
  idx windows = shuffle_windows(s), n;
  for (int r = 0; r < b->c->size; r++) {
    comm_share(windows, b->c->size, r, &first, &count);
    b->counts[r] = 0;
    for (gidx w = first; w < first + count; w++) {
      shuffle_window(s, (idx)w, &row, &n);
      b->counts[r] += n;
    }
  }
}

/* The pool at hand, which has a position of its epoch, to all ranks. */
static int pool_take(struct batches *b, gidx epoch, gidx row)
{
  const struct shuffle *s = &b->shuffle;
  int is_it = b->is_ahead && b->ahead.epoch == s->epoch && b->ahead.pool == s->pool;
  batches_rest(b);
  if (!is_it) TRY(comm_agree(b->c, ahead_begin(b, epoch, row)));
  batches_rest(b);
  b->is_ahead = 0;
  TRY(comm_agree_at(b->c, b->status ? status_set(b->status, b->why) : OK, b->key));
  if (b->c->size == 1) {
    float *pool = b->pool;
    b->pool = b->share;
    b->share = pool;
    return OK;
  }
  shares_count(b);
  return comm_allgather(b->c, b->share, b->counts, (size_t)b->rows->p * sizeof *b->pool, b->pool);
}

/* Begin to read the pool behind the one at hand, which begins at a position of its epoch. */
static int next_begin(struct batches *b, gidx epoch, gidx begin)
{
  gidx row = begin + b->shuffle.rows;
  if (row >= b->rows->n) epoch++, row = 0;
  if (epoch > b->last_epoch || (epoch == b->last_epoch && row > b->last_row)) return OK;
  return ahead_begin(b, epoch, row);
}

int batches_take(struct batches *b, gidx epoch, gidx first, idx count, float *x)
{
  gidx p = b->rows->p;
  for (idx done = 0; done < count;) {
    struct shuffle *s = &b->shuffle;
    gidx had_epoch = s->epoch, had_pool = s->pool, row = first + done;
    idx skip;
    shuffle_take(s, epoch, row, &skip);
    if (s->epoch != had_epoch || s->pool != had_pool) {
      TRY(pool_take(b, epoch, row));
      TRY(comm_agree(b->c, next_begin(b, epoch, row - skip)));
    }
    for (; skip < s->rows && done < count; skip++, done++)
      memcpy(x + done * p, b->pool + s->at[skip] * p, (size_t)p * sizeof *x);
  }
  return OK;
}

/* Is some row of x[n][p] another than this one? */
static int rows_differ(const float *x, gidx n, idx p, const float *row)
{
  gidx i = 0;
  while (i < n && memcmp(x + i * p, row, (size_t)p * sizeof *row) == 0) i++;
  return i < n;
}

/* *sum <- the terms of all ranks.  Each has its first row in b->share, and whether others differ
 * from it. */
static int ranks_join(struct batches *b, gidx count, int varies, gidx *sum)
{
  idx p = b->rows->p;
  memcpy(b->pool, b->share, (size_t)p * sizeof *b->pool);
  TRY(comm_broadcast(b->c, b->pool, p, sizeof *b->pool));
  gidx all[] = {*sum, varies || rows_differ(b->share, imin(count, 1), p, b->pool)};
  TRY(comm_sum(b->c, all, LENGTH(all)));
  *sum = all[0];
  CHECK(all[1], ERR_INPUT, "the rows of '%s' do not vary: there is nothing to learn",
        b->rows->name);
  return OK;
}

int batches_hash(struct batches *b, uint64_t *hash)
{
  gidx first, count, rows = imin(b->rows->n, SHUFFLE_ROWS);
  idx p = b->rows->p;
  uint64_t terms = 0;
  int status = OK, varies = 0;
  comm_share(b->rows->n, b->c->size, b->c->rank, &first, &count);
  for (gidx end = first + count, n; first < end && !status; first += n) {
    n = imin(rows, end - first);
    status = rows_access(&b->worker, (struct rows_access){b->rows, first, n, b->pool});
    if (status) break;
    terms += items_terms(b->pool, n, p, first);
    if (first + count == end) memcpy(b->share, b->pool, (size_t)p * sizeof *b->pool);
    varies = varies || rows_differ(b->pool, n, p, b->share);
  }
  TRY(comm_agree(b->c, status)); /* ranks ascend with their rows */
  gidx sum = (gidx)terms;
  TRY(ranks_join(b, count, varies, &sum));
  *hash = content_hash((uint64_t)sum, b->rows->n, p, 1);
  return OK;
}

int batches_scale(struct batches *b, int *scale)
{
  idx n = (idx)imin(b->rows->n, SHIFT_ROWS), p = b->rows->p;
  int status =
      b->c->rank ? OK : rows_access(&b->worker, (struct rows_access){b->rows, 0, n, b->pool});
  TRY(comm_agree(b->c, status));
  if (b->c->rank == 0) {
    rows_center(b->pool, n, p, b->mean);
    *scale = train_scale(b->pool, n, p);
  }
  return comm_broadcast(b->c, scale, 1, sizeof *scale);
}
