/* SPDX-License-Identifier: BSD-3-Clause
 * Each rank checks its share of the row numbers for keys of the window.  The rows that the ranks
 * find are gathered and sorted. */
#include "seed/draw.h"

#include <stdlib.h>

#include "base/rng.h"
#include "base/status.h"
#include "model/synth.h"

enum { MIN_FINDS = 1024 };

struct finds {
  struct drawn_row *rows; /* owned */
  gidx count, capacity;
};

static int finds_reserve(struct finds *f, gidx capacity)
{
  void *grown = realloc(f->rows, (size_t)capacity * sizeof *f->rows);
  CHECK(grown, ERR_MEMORY, "cannot allocate %lld drawn rows", (long long)capacity);
  f->rows = grown;
  f->capacity = capacity;
  return OK;
}

static int finds_add(struct finds *f, struct drawn_row row)
{
  if (f->count == f->capacity) TRY(finds_reserve(f, 2 * f->capacity));
  f->rows[f->count++] = row;
  return OK;
}

/* Last key of the window, inclusive. */
static uint64_t window_end(const struct draw *d)
{
  double part = (double)d->wanted / (double)d->n;
  if (part >= 1) return UINT64_MAX;
  uint64_t width = (uint64_t)(part * 0x1p64);
  if (width == 0) width = 1;
  return UINT64_MAX - d->from < width ? UINT64_MAX : d->from + (width - 1);
}

/* Collect the rows of this rank's share whose keys are in the window, which ends with `end`. */
static int partition_search(const struct draw *d, const struct comm *c, uint64_t end,
                            struct finds *f)
{
  gidx first, count;
  comm_partition(d->n, c->size, c->rank, &first, &count);
  TRY(finds_reserve(f, MIN_FINDS));
  for (gidx row = first; row < first + count; row++) {
    uint64_t key = random_bits(d->seed, STREAM_DRAW, (uint64_t)row);
    if (key >= d->from && key <= end) TRY(finds_add(f, (struct drawn_row){key, row}));
  }
  return OK;
}

static int drawn_compare(const void *x, const void *y)
{
  const struct drawn_row *a = x, *b = y;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  return (a->row > b->row) - (a->row < b->row);
}

/* Allocate the window for the finds of all ranks; counts[size] <- how many each rank has. */
static int window_alloc(struct draw *d, const gidx *found, int size, idx *counts)
{
  d->count = 0;
  for (int r = 0; r < size; r++) {
    d->count += found[r];
    counts[r] = (idx)found[r];
  }
  CHECK(d->count <= INT32_MAX, ERR_MEMORY, "%lld rows drawn at a time are too many",
        (long long)d->count);
  d->drawn = malloc((size_t)(d->count + 1) * sizeof *d->drawn);
  CHECK(d->drawn, ERR_MEMORY, "cannot allocate %lld drawn rows", (long long)d->count);
  return OK;
}

int draw_next(struct draw *d, struct comm *c)
{
  struct finds mine = {0};
  uint64_t end = window_end(d);
  draw_free(d);
  gidx *found = calloc((size_t)c->size, sizeof *found);
  idx *counts = calloc((size_t)c->size, sizeof *counts);
  int status = partition_search(d, c, end, &mine);
  if (!found || !counts)
    status = status_fail(ERR_MEMORY, __FILE__, __LINE__, "cannot allocate %d counts", c->size);
  TRY(comm_agree(c, status));
  TRY(comm_allgather_long(c, mine.count, found));
  TRY(comm_agree(c, window_alloc(d, found, c->size, counts)));
  TRY(comm_allgather(c, mine.rows, counts, sizeof *d->drawn, d->drawn));
  qsort(d->drawn, (size_t)d->count, sizeof *d->drawn, drawn_compare);
  d->ended = end == UINT64_MAX;
  d->from = end + 1;
  free(mine.rows);
  free(found);
  free(counts);
  return OK;
}

void draw_free(struct draw *d)
{
  free(d->drawn);
  d->drawn = NULL;
  d->count = 0;
}
