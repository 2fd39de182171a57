/* SPDX-License-Identifier: BSD-3-Clause
 * Rows are read in runs of consecutive rows.  A run of held-out rows ends with its window, a run of
 * fitted rows before the next held-out window. */
#include "model/split.h"

#include <math.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"

enum { STREAM = 0x5151 }; /* stream of the draws */
static const uint64_t DRAWS = UINT64_C(1) << 32;

static uint64_t draw(uint64_t seed, gidx window)
{
  return random_below(seed, STREAM, (uint64_t)window, DRAWS);
}

/* Draw the windows that are held out. */
static int windows_draw(struct row_split *s, const struct row_source *rows, real share,
                        uint64_t seed)
{
  gidx windows = rows->n / SPLIT_WINDOW, least = 0;
  uint64_t below = (uint64_t)(share * (real)DRAWS);
  *s = (struct row_split){.rows = rows};
  if (!(share > 0)) return OK;
  for (gidx w = 0; w < windows; w++) {
    s->count += draw(seed, w) < below;
    if (draw(seed, w) < draw(seed, least)) least = w;
  }
  int none = s->count == 0;
  s->count += none;
  CHECK(windows > 0 && s->count * SPLIT_WINDOW < rows->n, ERR_INPUT,
        "'%s' has %lld rows: too few to hold out windows of %d and to fit the rest; give "
        "'--holdout FILE', or '--holdout-share 0'%s",
        rows->name, (long long)rows->n, SPLIT_WINDOW,
        rows->n < rows->p ? "; or are they transposed?  A sample is a row: save them as rows.T"
                          : "");
  TRY(arena_alloc(&s->arena, &s->window, s->count, sizeof *s->window));
  gidx at = 0;
  for (gidx w = 0; w < windows; w++)
    if (none ? w == least : draw(seed, w) < below) s->window[at++] = w;
  return OK;
}

void split_free(struct row_split *s)
{
  arena_free(&s->arena);
  *s = (struct row_split){0};
}

/* Read a run of rows, given their numbers among all rows. */
static int run_read(const struct row_split *s, gidx first, idx count, float *out)
{
  TRY(s->rows->read(s->rows->self, first, count, out));
  return rows_source_check(s->rows, out, first, count);
}

/* Number of fitted rows before the j-th held-out window. */
static gidx fitted_before(const struct row_split *s, gidx j)
{
  return (s->window[j] - j) * SPLIT_WINDOW;
}

/* Number of held-out windows before fitted row i. */
static gidx windows_before(const struct row_split *s, gidx i)
{
  gidx low = 0, high = s->count;
  while (low < high) {
    gidx middle = low + (high - low) / 2;
    if (fitted_before(s, middle) <= i)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static int fitted_read(void *self, gidx first, idx count, float *out)
{
  const struct row_split *s = self;
  for (idx done = 0, n; done < count; done += n) {
    gidx i = first + done, j = windows_before(s, i);
    gidx left = j < s->count ? fitted_before(s, j) - i : count;
    n = (idx)imin(count - done, left);
    TRY(run_read(s, i + j * SPLIT_WINDOW, n, out + (gidx)done * s->rows->p));
  }
  return OK;
}

static int held_out_read(void *self, gidx first, idx count, float *out)
{
  const struct row_split *s = self;
  for (idx done = 0, n; done < count; done += n) {
    gidx i = first + done, within = i % SPLIT_WINDOW;
    n = (idx)imin(count - done, SPLIT_WINDOW - within);
    TRY(run_read(s, s->window[i / SPLIT_WINDOW] * SPLIT_WINDOW + within, n,
                 out + (gidx)done * s->rows->p));
  }
  return OK;
}

static void sources_make(struct row_split *s, struct row_source *fitted, struct row_source *held)
{
  gidx out = s->count * SPLIT_WINDOW;
  *fitted = *held = *s->rows;
  fitted->n = s->rows->n - out;
  held->n = out;
  fitted->self = held->self = s;
  fitted->read = fitted_read;
  held->read = held_out_read;
  fitted->make = held->make = NULL;
  fitted->place = held->place = NULL;
}

int split_open(struct row_split *s, const struct split_task *task, struct row_source *fitted,
               struct row_source *held)
{
  const struct row_source *rows = task->rows, *other = task->held;
  CHECK(rows->n > 0, ERR_INPUT, "'%s' has no rows: give a file that has some", rows->name);
  CHECK(!other || other->n > 0, ERR_INPUT, "'%s' has no rows: give a file that has some",
        other->name);
  CHECK(!other || other->p == rows->p, ERR_INPUT,
        "'%s' has %d columns, '%s' has %d: give rows of the same width", other->name, other->p,
        rows->name, rows->p);
  real most = (real)task->most / (real)rows->n;
  TRY(windows_draw(s, rows, other ? 0 : fmin(task->share, most), task->seed));
  sources_make(s, fitted, held);
  if (other) *held = *other;
  return OK;
}

static int part_read(void *self, gidx first, idx count, float *out)
{
  const struct row_part *part = self;
  return part->rows->read(part->rows->self, part->first + first, count, out);
}

static int part_make(void *self, gidx first, idx count, float *out)
{
  const struct row_part *part = self;
  return part->rows->make(part->rows->self, part->first + first, count, out);
}

static const char *part_position(void *self, gidx *row)
{
  const struct row_part *part = self;
  *row += part->first;
  return part->rows->place ? part->rows->place(part->rows->self, row) : part->rows->name;
}

void part_source(struct row_part *part, const struct row_source *rows, gidx first, gidx n,
                 struct row_source *out)
{
  *part = (struct row_part){rows, first};
  *out = *rows;
  out->n = n;
  out->self = part;
  out->read = part_read;
  out->make = rows->make ? part_make : NULL;
  out->place = part_position;
}
