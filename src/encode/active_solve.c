/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of rows on their active atoms.  Rows are grouped by length and padded with a zero atom, so
 * that the device's operation for supports of one length can be used.  All rows of a length are
 * solved at once, since a GPU has room for thousands. */
#include <string.h>

#include "base/status.h"
#include "device/codes.h"
#include "encode/active_solve.h"

enum {
  FINE = 64,  /* a length of at most FINE is a multiple of ACTIVE_STEP */
  COARSE = 32 /* a longer one is a multiple of COARSE: few rows are that long */
};
static const gidx ITEM = (gidx)sizeof(float);

_Static_assert((int)ACTIVE_LENGTHS == FINE / ACTIVE_STEP + (ACTIVE_MOST - FINE) / COARSE + 1,
               "as many lengths");

static gidx count_of(const struct active *a, idx row)
{
  return a->start[row + 1] - a->start[row];
}

/* The index of a row's length in a->lengths. */
static int length_of(const struct active *a, idx row)
{
  gidx n = count_of(a, row);
  if (n <= FINE) return (int)ceil_div(n, ACTIVE_STEP);
  return FINE / ACTIVE_STEP + (int)ceil_div(n - FINE, COARSE);
}

/* Sort the rows by length; rows of equal length stay in ascending order. */
static void rows_order(struct active *a)
{
  idx at = 0;
  gidx slot = 0;
  memset(a->lengths, 0, sizeof a->lengths);
  for (idx i = 0; i < a->n; i++) a->lengths[length_of(a, i)].n++;
  for (int b = 0; b < ACTIVE_LENGTHS; b++) {
    struct active_length *l = &a->lengths[b];
    idx fine = (idx)imin(b, FINE / ACTIVE_STEP);
    l->m = fine * ACTIVE_STEP + (b - fine) * COARSE;
    l->first = at;
    l->slot = slot;
    at += l->n;
    slot += (gidx)l->n * l->m;
    l->n = 0;
  }
  for (idx i = 0; i < a->n; i++) {
    struct active_length *l = &a->lengths[length_of(a, i)];
    a->place[i] = l->first + l->n++;
    a->order[a->place[i]] = i;
  }
}

/* The first slot of a row. */
static gidx slots_begin(const struct active *a, idx row)
{
  const struct active_length *l = &a->lengths[length_of(a, row)];
  return l->slot + (gidx)(a->place[row] - l->first) * l->m;
}

static gidx slots_end(const struct active *a)
{
  const struct active_length *last = &a->lengths[ACTIVE_LENGTHS - 1];
  return last->slot + (gidx)last->n * last->m;
}

static void slots_fill(void *self, gidx part)
{
  const struct active *a = self;
  for (idx i = (idx)part * ACTIVE_CHUNK; i < active_end(a, part); i++) {
    idx *slot = (idx *)a->slot.host + slots_begin(a, i);
    gidx n = count_of(a, i), m = a->lengths[length_of(a, i)].m;
    memcpy(slot, a->index + a->start[i], (size_t)n * sizeof *slot);
    for (gidx j = n; j < m; j++) slot[j] = a->most_k;
  }
}

/* Solve the codes of the rows of one length. */
static int length_solve(struct active *a, const struct active_length *l, real rho)
{
  const struct buffer slot = {.device = (idx *)a->slot.device + l->slot};
  struct buffer codes = {.device = (float *)a->codes.device + l->slot};
  struct codes_job job = {.n = l->n,
                          .m_new = l->m,
                          .max_m = l->m,
                          .rho = rho,
                          .first = l->first,
                          .rows = &a->sorted,
                          .atoms = &a->atoms,
                          .slot = &slot,
                          .toward = rho > 0 ? &a->toward : NULL,
                          .residual = &a->residual,
                          .codes = &codes};
  return device_codes(a->device, &job);
}

/* other.start[i + 1] <- how many codes of row i are greater than 0. */
static void codes_count(void *self, gidx part)
{
  const struct active *a = self;
  for (idx i = (idx)part * ACTIVE_CHUNK; i < active_end(a, part); i++) {
    const float *code = (const float *)a->codes.host + slots_begin(a, i);
    gidx n = count_of(a, i), kept = 0;
    for (gidx j = 0; j < n; j++) kept += code[j] > 0;
    a->other.start[i + 1] = kept;
  }
}

static void codes_keep(void *self, gidx part)
{
  const struct active *a = self;
  for (idx i = (idx)part * ACTIVE_CHUNK; i < active_end(a, part); i++) {
    const float *code = (const float *)a->codes.host + slots_begin(a, i);
    gidx from = a->start[i], n = count_of(a, i), at = a->other.start[i];
    for (gidx j = 0; j < n; j++) {
      if (!(code[j] > 0)) continue;
      a->other.index[at] = a->index[from + j];
      a->other.score[at] = a->score[from + j];
      a->code[at++] = code[j];
    }
  }
}

/* Drop the entries whose code is 0. */
static void entries_keep(struct active *a)
{
  const struct active_entries old = {a->start, a->index, a->score};
  active_parallel(a, codes_count);
  a->other.start[0] = 0;
  for (idx i = 0; i < a->n; i++) a->other.start[i + 1] += a->other.start[i];
  active_parallel(a, codes_keep);
  a->start = a->other.start;
  a->index = a->other.index;
  a->score = a->other.score;
  a->other = old;
}

int active_solve(struct active *a, real rho)
{
  struct device *dev = a->device;
  gidx unit = a->p * ITEM;
  struct buffer x = {.device = (float *)a->x->device + a->first * a->p};
  rows_order(a);
  const struct gather_job rows = {&x, a->order, a->n, unit, &a->sorted, 0};
  const struct gather_job same = {&x, a->order, a->lengths[0].n, unit, &a->residual, 0};
  if (a->n) TRY(device_gather(dev, &rows));
  if (same.n) TRY(device_gather(dev, &same));
  active_parallel(a, slots_fill);
  TRY(device_put(dev, &a->slot, 0, slots_end(a) * (gidx)sizeof(idx)));
  for (int b = 1; b < ACTIVE_LENGTHS; b++) TRY(length_solve(a, &a->lengths[b], rho));
  TRY(device_get(dev, &a->codes, 0, slots_end(a) * ITEM));
  entries_keep(a);
  return OK;
}
