/* SPDX-License-Identifier: BSD-3-Clause
 * The windows of a pool are divided in order among the ranks.  Each rank reads its windows to their
 * positions in the pool, and gets the other windows by an exchange between devices.  The device
 * picks the rows of a batch.  The pool that is read ahead has a struct shuffle of its own. */
#include "train/batches.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "comm/buffers.h"
#include "device/device.h"
#include "model/access.h"
#include "model/identity.h"
#include "model/train.h"

int batches_alloc(struct batches *b, struct arena *arena, uint64_t seed)
{
  TRY(shuffle_init(&b->shuffle, arena, b->rows->n, seed));
  TRY(shuffle_init(&b->ahead, arena, b->rows->n, seed));
  return arena_alloc(arena, &b->counts, b->c->size, sizeof *b->counts);
}

int batches_buffers(struct batches *b, struct device *dev)
{
  gidx bytes = imin(b->rows->n, SHUFFLE_ROWS) * b->rows->p * (gidx)sizeof(float);
  b->device = dev;
  TRY(buffer_alloc(dev, &b->pool, bytes));
  return buffer_alloc(dev, &b->next, bytes);
}

int batches_open(struct batches *b)
{
  return worker_open(&b->worker);
}

void batches_close(struct batches *b)
{
  worker_close(&b->worker);
  if (!b->device) return;
  buffer_free(b->device, &b->pool);
  buffer_free(b->device, &b->next);
}

void batches_rest(struct batches *b)
{
  if (!b->is_busy) return;
  b->status = worker_wait(&b->worker);
  snprintf(b->why, sizeof b->why, "%s", b->status ? status_message() : "");
  status_clear();
  b->is_busy = 0;
}

/* This rank's windows of the next pool. */
struct windows {
  struct batches *b;
  float *x; /* rows of the first window; the others follow */
  int status[SHUFFLE_POOL];
};

/* Load window i.  The last window of the file may be shorter than others, and may be anywhere in
 * the pool.  So the position of window i is a sum over the windows in front of it.  ERR_INPUT: a
 * value is not finite. */
static int window_load(const struct windows *all, gidx i)
{
  const struct batches *b = all->b;
  gidx row, place = 0;
  idx n, p = b->rows->p;
  for (gidx w = 0; w < i; w++, place += n) shuffle_window(&b->ahead, b->window + (idx)w, &row, &n);
  shuffle_window(&b->ahead, b->window + (idx)i, &row, &n);
  struct rows_load load = {b->rows, row, n, .x = all->x + place * p, .mean = b->mean};
  TRY(rows_load(&load));
  train_rows_scale(load.x, (gidx)n * p, b->scale);
  return rows_source_check(b->rows, load.x, row, n);
}

static void window_run(void *self, gidx i)
{
  struct windows *all = self;
  all->status[i] = window_load(all, i);
  status_clear(); /* of this thread */
}

/* Set b->counts and b->first for the next pool. */
static void shares_count(struct batches *b)
{
  const struct shuffle *s = &b->ahead;
  gidx first, count, row;
  idx windows = shuffle_windows(s), n;
  b->first = 0;
  for (int r = 0; r < b->c->size; r++) {
    comm_partition(windows, b->c->size, r, &first, &count);
    b->counts[r] = 0;
    for (gidx w = first; w < first + count; w++) {
      shuffle_window(s, (idx)w, &row, &n);
      b->counts[r] += n;
    }
    if (r < b->c->rank) b->first += b->counts[r];
  }
}

/* Find the next pool, and this rank's windows of it; *count <- their number. */
static void windows_find(struct batches *b, gidx *count)
{
  gidx first;
  idx skip;
  shuffle_take(&b->ahead, b->ahead_epoch, b->ahead_row, &skip);
  comm_partition(shuffle_windows(&b->ahead), b->c->size, b->c->rank, &first, count);
  b->window = (idx)first;
  shares_count(b);
}

/* The thread: read this rank's windows to their positions.  If windows failed, the first of them in
 * the pool is read again here, to make its message. */
static int windows_read(void *self)
{
  struct batches *b = self;
  gidx count;
  idx n;
  windows_find(b, &count);
  struct windows all = {.b = b, .x = (float *)b->next.host + b->first * b->rows->p};
  if (b->rows->is_shared) {
    spare_run(count, window_run, &all);
  } else {
    for (gidx i = 0; i < count; i++) window_run(&all, i);
  }
  for (gidx i = 0; i < count; i++) {
    if (!all.status[i]) continue;
    shuffle_window(&b->ahead, b->window + (idx)i, &b->key, &n);
    TRY(window_load(&all, i));
  }
  return OK;
}

/* Begin to read the pool with position `row` of the epoch. */
static int ahead_begin(struct batches *b, gidx epoch, gidx row)
{
  b->ahead_epoch = epoch;
  b->ahead_row = row;
  b->key = 0;
  TRY(worker_start(&b->worker, windows_read, b));
  b->is_busy = b->is_ahead = 1;
  return OK;
}

/* Make the pool with position `row` of the epoch the current one, on the devices of all ranks. */
static int pool_take(struct batches *b, gidx epoch, gidx row)
{
  const struct shuffle shuffle = b->shuffle;
  const struct buffer pool = b->pool;
  gidx bytes = b->rows->p * (gidx)sizeof(float);
  batches_rest(b);
  if (!b->is_ahead || !shuffle_has(&b->ahead, epoch, row)) {
    TRY(comm_agree(b->c, ahead_begin(b, epoch, row)));
    batches_rest(b);
  }
  b->is_ahead = 0;
  TRY(comm_agree_at(b->c, b->status ? status_set(b->status, b->why) : OK, b->key));
  b->shuffle = b->ahead;
  b->pool = b->next;
  b->ahead = shuffle;
  b->next = pool;
  TRY(comm_agree(b->c,
                 device_put(b->device, &b->pool, b->first * bytes, b->counts[b->c->rank] * bytes)));
  return comm_allgather_buffer(b->c, b->device, &b->pool, b->counts, (size_t)bytes);
}

/* Begin to read the pool after the current one. */
static int next_begin(struct batches *b)
{
  gidx epoch = b->shuffle.epoch, row = b->shuffle.before + b->shuffle.rows;
  if (row >= b->rows->n) epoch++, row = 0;
  if (epoch > b->last_epoch || (epoch == b->last_epoch && row > b->last_row)) return OK;
  return ahead_begin(b, epoch, row);
}

int batches_take(struct batches *b, gidx epoch, gidx first, idx count, struct buffer *x)
{
  int status = OK;
  for (idx done = 0, n; done < count; done += n) {
    gidx row = first + done;
    if (!shuffle_has(&b->shuffle, epoch, row)) {
      TRY(pool_take(b, epoch, row));
      TRY(comm_agree(b->c, next_begin(b)));
    }
    idx skip = (idx)(row - b->shuffle.before);
    n = (idx)imin(b->shuffle.rows - skip, count - done);
    struct gather_job job = {&b->pool, b->shuffle.at + skip, n, b->rows->p * (gidx)sizeof(float), x,
                             done};
    if (!status) status = device_gather(b->device, &job);
  }
  return comm_agree(b->c, status);
}

/* Does any row of x[n][p] differ from this one? */
static int rows_differ(const float *x, gidx n, idx p, const float *row)
{
  gidx i = 0;
  while (i < n && memcmp(x + i * p, row, (size_t)p * sizeof *row) == 0) i++;
  return i < n;
}

/* *sum, of this rank's hash terms, becomes the sum of all ranks' terms.  ERR_INPUT if all rows are
 * equal.  b->next has this rank's first row; varies: another row of this rank differs from it. */
static int ranks_join(struct batches *b, gidx count, int varies, gidx *sum)
{
  idx p = b->rows->p;
  float *row = b->pool.host, *own = b->next.host;
  memcpy(row, own, (size_t)p * sizeof *row);
  TRY(comm_broadcast(b->c, row, p, sizeof *row));
  gidx all[] = {*sum, varies || rows_differ(own, imin(count, 1), p, row)};
  TRY(comm_sum(b->c, all, LENGTH(all)));
  *sum = all[0];
  CHECK(all[1], ERR_INPUT,
        "the rows of '%s' do not vary, so that there is nothing to learn: give other rows",
        b->rows->name);
  return OK;
}

/* *terms <- the sum of the hash terms of own rows; *varies <- 1 if a row differs from the first own
 * row, which is kept in b->next. */
static int partition_hash(struct batches *b, struct row_reader *r, gidx first, gidx count,
                          uint64_t *terms, int *varies)
{
  idx p = b->rows->p;
  float *row = b->next.host;
  for (gidx end = first + count, begin = first, n; begin < end; begin += n) {
    n = imin(r->most, end - begin);
    TRY(row_reader_take(r, begin, n, begin + n, end - begin - n));
    *terms += items_terms(r->x, n, p, begin);
    if (begin == first) memcpy(row, r->x, (size_t)p * sizeof *row);
    *varies = *varies || rows_differ(r->x, n, p, row);
  }
  return OK;
}

int batches_hash(struct batches *b, uint64_t *hash)
{
  struct arena arena = {0};
  struct row_reader reader = {0};
  gidx first, count;
  uint64_t terms = 0;
  int varies = 0;
  comm_partition(b->rows->n, b->c->size, b->c->rank, &first, &count);
  int status = row_reader_open(&reader, b->rows, &arena);
  if (!status) status = partition_hash(b, &reader, first, count, &terms, &varies);
  row_reader_close(&reader);
  arena_free(&arena);
  TRY(comm_agree(b->c, status)); /* the lowest rank with an error has the first bad row */
  gidx sum = (gidx)terms;
  TRY(ranks_join(b, count, varies, &sum));
  *hash = content_hash((uint64_t)sum, b->rows->n, b->rows->p, 1);
  return OK;
}

int batches_scale(struct batches *b, int *scale)
{
  idx n = (idx)imin(b->rows->n, SHIFT_ROWS), p = b->rows->p;
  float *x = b->pool.host;
  int status = b->c->rank ? OK : rows_access(&b->worker, (struct rows_access){b->rows, 0, n, x});
  TRY(comm_agree(b->c, status));
  if (b->c->rank == 0) {
    rows_center(x, n, p, b->mean);
    *scale = train_scale(x, n, p);
  }
  return comm_broadcast(b->c, scale, 1, sizeof *scale);
}
