/* SPDX-License-Identifier: BSD-3-Clause
 * A feature that fires in the present row is stamped with the row's number; each code checks one
 * stamp. */
#include "model/recovery.h"

#include "base/status.h"

int recovery_init(struct recovery_counts *r, idx k, idx f, struct arena *arena)
{
  *r = (struct recovery_counts){.k = k, .f = f};
  TRY(arena_alloc(arena, &r->fires, k, sizeof *r->fires));
  TRY(arena_alloc(arena, &r->both, k, sizeof *r->both));
  TRY(arena_alloc(arena, &r->active, f, sizeof *r->active));
  return arena_alloc(arena, &r->stamp, f, sizeof *r->stamp);
}

void recovery_count(struct recovery_counts *r, gidx codes, const idx *atoms, const float *code,
                    gidx features, const idx *feature, const float *magnitude)
{
  gidx row = ++r->rows;
  for (gidx i = 0; i < features; i++) {
    if (!(magnitude[i] > 0)) continue;
    r->entries++;
    r->active[feature[i]]++;
    r->stamp[feature[i]] = row;
  }
  for (gidx i = 0; i < codes; i++) {
    if (code[i] == 0) continue;
    r->fires[atoms[i]]++;
    r->both[atoms[i]] += r->stamp[r->nearest[atoms[i]]] == row;
  }
}

void recovery_finish(const struct recovery_counts *r, struct recovery *out)
{
  idx distinct = 0;
  *out = (struct recovery){0};
  for (idx i = 0; i < r->f; i++) r->stamp[i] = 0;
  for (idx a = 0; a < r->k; a++) {
    idx feature = r->nearest[a];
    real both = (real)r->both[a];
    distinct += r->stamp[feature]++ == 0;
    if (r->both[a] == 0) continue;
    out->precision += both / (real)r->fires[a];
    out->recall += both / (real)r->active[feature];
    out->f1 += 2 * both / (real)(r->fires[a] + r->active[feature]);
  }
  out->precision /= r->k;
  out->recall /= r->k;
  out->f1 /= r->k;
  out->uniqueness = (real)distinct / r->k;
  out->true_l0 = r->rows ? (real)r->entries / (real)r->rows : 0;
}
