/* SPDX-License-Identifier: BSD-3-Clause
 * The plain way: three loops for the scores, and insertion into a sorted list for the selection. */
#include "model/route.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

float route_score(const float *row, const float *vector, idx p)
{
  float sum = 0;
  for (idx c = 0; c < p; c++) {
    float product = row[c] * vector[c];
    sum = sum + product;
  }
  return sum;
}

float route_positive(float score)
{
  return isfinite(score) && !(score > 0) ? 0 : score;
}

/* Bounds on the largest magnitude in a row.  Below SMALL, squares of numbers that are 2^-24 times
 * as large would lose digits.  From LARGE on, a gate may overflow float32; scaled by LARGE_POWER
 * the gate overflows only if its score does. */
static const float SMALL = 0x1p-39f, LARGE = 0x1p54f;
enum { LARGE_POWER = -64 };

int route_power(const float *row, idx p)
{
  float max = 0;
  for (idx c = 0; c < p; c++) max = fabsf(row[c]) > max ? fabsf(row[c]) : max;
  if (max == 0 || (max >= SMALL && max < LARGE)) return 0;
  return max < 1 ? -ilogbf(max) : LARGE_POWER;
}

void route_scale(const float *row, int power, idx p, float *out)
{
  double unit = ldexp(1, power);
  for (idx c = 0; c < p; c++) out[c] = (float)(row[c] * unit);
}

float route_value(const float *row, const float *frame, idx d, idx p)
{
  if (d == 1) return route_score(row, frame, p);
  float gate = 0;
  for (idx m = 0; m < d; m++) {
    float z = route_score(row, frame + (gidx)m * p, p);
    float square = z * z;
    gate = gate + square;
  }
  return gate;
}

int entry_before(struct entry a, struct entry b)
{
  if (a.atom < 0 || b.atom < 0) return a.atom >= 0 && b.atom < 0;
  float x = fabsf(a.value), y = fabsf(b.value);
  return x > y || (x == y && a.atom < b.atom);
}

float entry_score(struct entry e, idx d, int power)
{
  return d == 1 ? e.value : (float)(sqrtf(e.value) * ldexp(1, -power));
}

idx round_end(idx top_s, idx rounds, idx r)
{
  return (idx)((gidx)r * top_s / rounds);
}

static int is_excluded(const struct exclusions *e, idx row, idx atom)
{
  for (idx j = 0; j < e->count; j++)
    if (e->atoms[(gidx)row * e->stride + j] == atom) return 1;
  return 0;
}

/* Insert an entry into a sorted list; the last entry drops out. */
static void list_insert(struct entry *list, idx top_k, struct entry e)
{
  idx at = top_k;
  while (at > 0 && entry_before(e, list[at - 1])) at--;
  for (idx j = top_k - 1; j > at; j--) list[j] = list[j - 1];
  if (at < top_k) list[at] = e;
}

/* Route row i, given as x. */
static void row_route(const struct route_reference *r, idx i, const float *x, struct entry *list,
                      struct bad_score *bad)
{
  for (idx j = 0; j < r->top_k; j++) list[j] = ENTRY_NONE;
  for (idx a = 0; a < r->count; a++) {
    const float *frame = r->atoms + (gidx)a * r->d * r->p;
    struct entry e = {route_value(x, frame, r->d, r->p), r->atom_of[a]};
    if (r->nonnegative) e.value = route_positive(e.value);
    if (!isfinite(e.value)) {
      if (bad->row < 0 || i < bad->row || (i == bad->row && e.atom < bad->atom))
        *bad = (struct bad_score){i, e.atom};
      continue;
    }
    if (!is_excluded(&r->excluded, i, e.atom)) list_insert(list, r->top_k, e);
  }
}

int route_reference(const struct route_reference *r, struct entry *lists, struct bad_score *bad)
{
  float *x = malloc((size_t)r->p * sizeof *x);
  CHECK(x, ERR_MEMORY, "cannot allocate a row of %d", r->p);
  for (idx i = 0; i < r->n; i++) {
    const float *row = r->rows + (gidx)i * r->p;
    route_scale(row, r->d > 1 ? route_power(row, r->p) : 0, r->p, x);
    row_route(r, i, x, lists + (gidx)i * r->top_k, bad);
  }
  free(x);
  return OK;
}

void lists_merge(const struct entry *lists, idx parts, gidx stride, idx top_k, struct entry *out)
{
  memcpy(out, lists, (size_t)top_k * sizeof *out);
  for (idx part = 1; part < parts; part++)
    for (idx j = 0; j < top_k; j++) {
      struct entry e = lists[part * stride + j];
      if (e.atom < 0 || !entry_before(e, out[top_k - 1])) break;
      list_insert(out, top_k, e);
    }
}
