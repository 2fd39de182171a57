/* SPDX-License-Identifier: BSD-3-Clause
 * Rows have different numbers of entries, but device_normal_add() needs the same number for all
 * rows.  So rows are padded with codes of 0, which add nothing. */
#include "find/sums.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "device/normal.h"

static const gidx REAL = (gidx)sizeof(real);

/* Allocate the buffers that are needed to move atoms. */
static int moves_open(struct finder *f, gidx columns)
{
  struct find_shares *s = &f->sums;
  struct device *dev = &f->device;
  gidx k = f->plan.grown, widest = f->widest;
  TRY(buffer_alloc(dev, &s->moved, k * columns * REAL));
  /* A block of m atoms after `first` atoms takes m first reals; m + first is at most k. */
  TRY(buffer_alloc(dev, &s->panel, imax(k * k / 4, 1) * REAL));
  TRY(buffer_alloc(dev, &s->square, widest * widest * REAL));
  TRY(buffer_alloc_device(dev, &s->half, widest * columns * REAL));
  TRY(arena_alloc(&f->arena, &s->gathered, k * f->p, sizeof *s->gathered));
  TRY(arena_alloc(&f->arena, &s->all, k * f->p, sizeof *s->all));
  TRY(arena_alloc(&f->arena, &s->intercept, f->p, sizeof *s->intercept));
  return arena_alloc(&f->arena, &s->pivot, widest, sizeof *s->pivot);
}

int sums_open(struct finder *f)
{
  struct find_shares *s = &f->sums;
  struct device *dev = &f->device;
  gidx k = f->plan.grown + 1, columns, first, slots;
  s->rows = (idx)imin(SUM_ROWS, imax(f->plan.batch, 1));
  slots = (gidx)s->rows * SUM_MOST;
  comm_partition(f->p, f->c->size, f->c->rank, &first, &columns);
  s->begin = (idx)first;
  s->end = (idx)(first + columns);
  TRY(buffer_alloc(dev, &s->gram, k * k * REAL));
  TRY(buffer_alloc(dev, &s->target, k * columns * REAL));
  TRY(buffer_alloc(dev, &s->slots, slots * (gidx)sizeof(idx)));
  TRY(buffer_alloc(dev, &s->codes, slots * (gidx)sizeof(float)));
  TRY(buffer_alloc_device(
      dev, &s->work, device_normal_bytes(dev, s->rows, SUM_MOST, (idx)k, (idx)imax(columns, 1))));
  return moves_open(f, columns);
}

void sums_close(struct finder *f)
{
  struct find_shares *s = &f->sums;
  struct buffer *const all[] = {&s->gram,  &s->target, &s->slots,  &s->codes, &s->work,
                                &s->moved, &s->panel,  &s->square, &s->half};
  dense_close(&s->dense);
  for (int i = 0; i < LENGTH(all); i++) buffer_free(&f->device, all[i]);
}

int sums_clear(struct finder *f)
{
  struct find_shares *s = &f->sums;
  gidx k = f->k + 1, first, count;
  comm_partition(k, f->c->size, f->c->rank, &first, &count);
  s->first = (idx)first;
  s->count = (idx)count;
  memset(f->firing, 0, (size_t)f->k * sizeof *f->firing);
  memset(f->code_sums, 0, (size_t)f->k * sizeof *f->code_sums);
  f->fired_rows = 0;
  s->weights = 0;
  TRY(device_clear(&f->device, &s->gram, 0, k * k * REAL));
  return device_clear(&f->device, &s->target, 0, k * (s->end - s->begin) * REAL);
}

/* slot[m] <- the row's atoms, the intercept, and then the first atoms that the row does not
 * have. */
static void slots_fill(const struct finder *f, idx row, idx m, idx *slot)
{
  const struct batch_codes *b = &f->codes;
  idx n = b->lengths[row], next = 0, at = 0;
  memcpy(slot, b->index + b->start[row], (size_t)n * sizeof *slot);
  slot[n] = f->k;
  for (idx j = n + 1; j < m; next++) {
    while (at < n && slot[at] < next) at++;
    if (at == n || slot[at] != next) slot[j++] = next;
  }
}

/* code[m] <- the codes of slot[m], times a factor of the row; the intercept has code 1. */
static void codes_fill(const struct finder *f, idx row, idx m, real factor, float *code)
{
  const struct batch_codes *b = &f->codes;
  idx n = b->lengths[row];
  const float *from = b->code + b->start[row];
  for (idx j = 0; j < n; j++) code[j] = (float)(factor * (real)from[j]);
  code[n] = (float)factor;
  for (idx j = n + 1; j < m; j++) code[j] = 0;
}

/* Rows first .. first + n - 1 of the batch, padded to m entries; part: which arrays are filled
 * in. */
struct rows_filling {
  const struct finder *f;
  idx first, n, m;
  enum { FILL_SLOTS, FILL_GRAM, FILL_TARGET } part;
};

enum { FILL_ROWS = 64 }; /* rows that a thread fills in at a time */

static void some_fill(void *self, gidx part)
{
  const struct rows_filling *r = self;
  const struct find_shares *s = &r->f->sums;
  for (idx i = (idx)part * FILL_ROWS; i < r->n && i < (part + 1) * FILL_ROWS; i++) {
    gidx at = (gidx)i * r->m;
    real weight = r->f->codes.weight[r->first + i];
    if (r->part == FILL_SLOTS)
      slots_fill(r->f, r->first + i, r->m, (idx *)s->slots.host + at);
    else
      codes_fill(r->f, r->first + i, r->m, r->part == FILL_GRAM ? sqrt(weight) : weight,
                 (float *)s->codes.host + at);
  }
}

static void rows_fill(struct rows_filling *r)
{
  team_run(r->f->task->threads, ceil_div(r->n, FILL_ROWS), some_fill, r);
}

/* Add the rows to the Gram matrix, or to the target. */
static int codes_add(struct finder *f, idx first, idx n, idx m, int is_target)
{
  struct find_shares *s = &f->sums;
  const struct buffer x = {.device = (float *)f->x.device + (gidx)first * f->p};
  struct buffer own = {.device = (real *)s->gram.device + (gidx)s->first * (f->k + 1)};
  struct normal_job job = {.n = n,
                           .s = m,
                           .p = f->p,
                           .k = f->k + 1,
                           .slots = &s->slots,
                           .codes = &s->codes,
                           .x = &x,
                           .own = {.step = NORMAL_BLOCK},
                           .gram = &s->gram,
                           .target = &s->target,
                           .work = &s->work};
  if (is_target) {
    job.begin = s->begin;
    job.end = s->end;
  } else {
    gidx end = imin(s->first + s->count, f->k); /* the intercept's row is filled in later */
    job.own = (struct normal_own){s->first, (idx)imax(end - s->first, 0), NORMAL_BLOCK};
    job.gram = &own;
  }
  rows_fill(&(struct rows_filling){f, first, n, m, is_target ? FILL_TARGET : FILL_GRAM});
  TRY(device_put(&f->device, &s->codes, 0, (gidx)n * m * (gidx)sizeof(float)));
  return device_normal_add(&f->device, &job);
}

/* Add rows first .. first + n - 1 of the batch.  For the Gram matrix both factors of a product are
 * multiplied by the square root of the row's weight; for the target one factor is multiplied by the
 * weight. */
static int rows_add(struct finder *f, idx first, idx n)
{
  struct find_shares *s = &f->sums;
  idx m = 0;
  for (idx i = first; i < first + n; i++) m = (idx)imax(m, f->codes.lengths[i]);
  m++;
  rows_fill(&(struct rows_filling){f, first, n, m, FILL_SLOTS});
  TRY(device_put(&f->device, &s->slots, 0, (gidx)n * m * (gidx)sizeof(idx)));
  TRY(codes_add(f, first, n, m, 0));
  return codes_add(f, first, n, m, 1);
}

int sums_add(struct finder *f)
{
  const struct batch_codes *b = &f->codes;
  for (gidx e = 0; e < b->start[b->n]; e++) {
    f->firing[b->index[e]]++;
    f->code_sums[b->index[e]] += b->code[e];
  }
  for (idx i = 0; i < b->n; i++) {
    real root = (float)sqrt(b->weight[i]);
    f->sums.weights = fma(root, root, f->sums.weights);
  }
  f->fired_rows += b->n;
  for (idx i = 0, n; i < b->n; i += n) {
    n = (idx)imin(f->sums.rows, b->n - i);
    TRY(rows_add(f, i, n));
  }
  return OK;
}
