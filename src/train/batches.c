/* SPDX-License-Identifier: BSD-3-Clause
 * A pool's windows are shared out as they follow each other; an exchange gives each rank all. */
#include "train/batches.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "model/access.h"
#include "model/identity.h"
#include "model/train.h"

int batches_alloc(struct batches *b, struct arena *arena, uint64_t seed)
{
  gidx rows = imin(b->rows->n, SHUFFLE_ROWS);
  TRY(shuffle_init(&b->shuffle, arena, b->rows->n, seed));
  TRY(arena_alloc(arena, &b->pool, rows * b->rows->p, sizeof *b->pool));
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

/* Read this rank's windows to their place; *key <- the first row of the window that failed. */
static int windows_read(struct batches *b, idx first, idx end, gidx at, gidx *key)
{
  idx p = b->rows->p;
  for (idx w = first; w < end; w++) {
    gidx row;
    idx n;
    float *x = b->pool + at * p;
    shuffle_window(&b->shuffle, w, &row, &n);
    *key = row;
    TRY(rows_access(&b->worker, (struct rows_access){b->rows, row, n, x}));
    rows_center(x, n, p, b->mean);
    for (gidx i = 0; i < (gidx)n * p; i++) x[i] = ldexpf(x[i], b->scale);
    TRY(rows_source_check(b->rows, x, row, n));
    at += n;
  }
  return OK;
}

static int pool_read(struct batches *b)
{
  struct comm *c = b->c;
  gidx at = 0, own = 0, key = 0, first, count, begin = 0, end = 0;
  idx windows = shuffle_windows(&b->shuffle);
  for (int r = 0; r < c->size; r++) {
    gidx row;
    idx n;
    comm_share(windows, c->size, r, &first, &count);
    if (r == c->rank) own = at, begin = first, end = first + count;
    b->counts[r] = 0;
    for (gidx w = first; w < first + count; w++) {
      shuffle_window(&b->shuffle, (idx)w, &row, &n);
      b->counts[r] += n;
    }
    at += b->counts[r];
  }
  int status = windows_read(b, (idx)begin, (idx)end, own, &key);
  TRY(comm_agree_at(c, status, key));
  gidx p = b->rows->p;
  return comm_allgather(c, b->pool + own * p, b->counts, (size_t)p * sizeof *b->pool, b->pool);
}

int batches_take(struct batches *b, gidx epoch, gidx first, idx count, float *x)
{
  gidx p = b->rows->p;
  for (idx done = 0; done < count;) {
    struct shuffle *s = &b->shuffle;
    gidx had_epoch = s->epoch, had_pool = s->pool;
    idx skip;
    shuffle_take(s, epoch, first + done, &skip);
    if (s->epoch != had_epoch || s->pool != had_pool) TRY(pool_read(b));
    for (; skip < s->rows && done < count; skip++, done++)
      memcpy(x + done * p, b->pool + s->at[skip] * p, (size_t)p * sizeof *x);
  }
  return OK;
}

int batches_hash(struct batches *b, uint64_t *hash)
{
  gidx first, count, rows = imin(b->rows->n, SHUFFLE_ROWS);
  idx p = b->rows->p;
  uint64_t terms = 0;
  int status = OK;
  comm_share(b->rows->n, b->c->size, b->c->rank, &first, &count);
  for (gidx end = first + count, n; first < end && !status; first += n) {
    n = imin(rows, end - first);
    status = rows_access(&b->worker, (struct rows_access){b->rows, first, n, b->pool});
    if (!status) terms += items_terms(b->pool, n, p, first);
  }
  TRY(comm_agree(b->c, status)); /* ranks ascend with their rows */
  gidx sum = (gidx)terms;
  TRY(comm_sum(b->c, &sum, 1));
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
