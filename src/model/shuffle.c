/* SPDX-License-Identifier: BSD-3-Clause
 * Windows are sorted by random numbers.  Then the rows of each pool are sorted by other random
 * numbers. */
#include "model/shuffle.h"

#include <stdlib.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"

/* stream of the draws; each epoch has two streams */
static const uint64_t STREAM = 0x7452ull << 32;

struct shuffle_key {
  uint64_t draw;
  gidx i;
};

int shuffle_init(struct shuffle *s, struct arena *arena, gidx n, uint64_t seed)
{
  gidx windows = ceil_div(n, SHUFFLE_WINDOW);
  *s = (struct shuffle){.seed = seed,
                        .n = n,
                        .windows = windows,
                        .pools = ceil_div(windows, SHUFFLE_POOL),
                        .epoch = -1,
                        .pool = -1};
  TRY(arena_alloc(arena, &s->key, windows, sizeof *s->key));
  TRY(arena_alloc(arena, &s->row, imin(n, SHUFFLE_ROWS), sizeof *s->row));
  return arena_alloc(arena, &s->at, imin(n, SHUFFLE_ROWS), sizeof *s->at);
}

static int keys_compare(const void *left, const void *right)
{
  const struct shuffle_key *a = left, *b = right;
  if (a->draw != b->draw) return a->draw < b->draw ? -1 : 1;
  return a->i < b->i ? -1 : a->i > b->i;
}

static gidx window_rows(const struct shuffle *s, gidx window)
{
  return imin(s->n - window * SHUFFLE_WINDOW, SHUFFLE_WINDOW);
}

static void epoch_sort(struct shuffle *s, gidx epoch)
{
  for (gidx w = 0; w < s->windows; w++)
    s->key[w] =
        (struct shuffle_key){random_bits(s->seed, STREAM + 2 * (uint64_t)epoch, (uint64_t)w), w};
  qsort(s->key, (size_t)s->windows, sizeof *s->key, keys_compare);
  s->epoch = epoch;
  s->pool = -1;
}

static void pool_sort(struct shuffle *s, gidx pool)
{
  s->pool = pool;
  s->rows = 0;
  for (idx i = 0; i < shuffle_windows(s); i++) {
    gidx first;
    idx count;
    shuffle_window(s, i, &first, &count);
    for (idx r = 0; r < count; r++, s->rows++)
      s->row[s->rows] = (struct shuffle_key){
          random_bits(s->seed, STREAM + 2 * (uint64_t)s->epoch + 1, (uint64_t)(first + r)),
          s->rows};
  }
  qsort(s->row, (size_t)s->rows, sizeof *s->row, keys_compare);
  for (idx r = 0; r < s->rows; r++) s->at[r] = (idx)s->row[r].i;
}

void shuffle_take(struct shuffle *s, gidx epoch, gidx row, idx *skip)
{
  if (s->epoch != epoch) epoch_sort(s, epoch);
  gidx pool = 0, before = 0;
  for (; pool + 1 < s->pools; pool++) {
    gidx rows = 0;
    for (gidx w = pool * SHUFFLE_POOL; w < (pool + 1) * SHUFFLE_POOL; w++)
      rows += window_rows(s, s->key[w].i);
    if (before + rows > row) break;
    before += rows;
  }
  if (s->pool != pool) pool_sort(s, pool);
  s->before = before;
  *skip = (idx)(row - before);
}

int shuffle_has(const struct shuffle *s, gidx epoch, gidx row)
{
  return s->epoch == epoch && s->pool >= 0 && row >= s->before && row < s->before + s->rows;
}

idx shuffle_windows(const struct shuffle *s)
{
  return (idx)imin(s->windows - s->pool * SHUFFLE_POOL, SHUFFLE_POOL);
}

void shuffle_window(const struct shuffle *s, idx i, gidx *first, idx *count)
{
  gidx window = s->key[s->pool * SHUFFLE_POOL + i].i;
  *first = window * SHUFFLE_WINDOW;
  *count = (idx)window_rows(s, window);
}
