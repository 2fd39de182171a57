/* SPDX-License-Identifier: BSD-3-Clause
 * Each list is kept sorted; most codes are rejected by comparing with its last entry. */
#include "model/top.h"

#include <math.h>

#include "base/status.h"

int top_init(struct top_rows *t, struct arena *arena, idx k, idx r)
{
  gidx count = (gidx)k * r;
  *t = (struct top_rows){.k = k, .r = r};
  TRY(arena_alloc(arena, &t->row, count, sizeof *t->row));
  TRY(arena_alloc(arena, &t->code, count, sizeof *t->code));
  for (gidx i = 0; t->row && i < count; i++) t->row[i] = -1;
  return OK;
}

int top_before(float a, gidx row_a, float b, gidx row_b)
{
  float x = fabsf(a), y = fabsf(b);
  return x > y || (x == y && row_a < row_b);
}

void top_add(struct top_rows *t, idx atom, gidx row, float code)
{
  gidx *rows = t->row + (gidx)atom * t->r;
  float *codes = t->code + (gidx)atom * t->r;
  idx at = t->r;
  if (code == 0) return;
  while (at > 0 && (rows[at - 1] < 0 || top_before(code, row, codes[at - 1], rows[at - 1]))) {
    at--;
    if (at + 1 == t->r) continue;
    rows[at + 1] = rows[at];
    codes[at + 1] = codes[at];
  }
  if (at == t->r) return;
  rows[at] = row;
  codes[at] = code;
}
