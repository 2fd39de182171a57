/* SPDX-License-Identifier: BSD-3-Clause
 * The arrays of the parts (lanczos.h: small matrices whose sum is S) and of the Lanczos vectors.
 * The backend has the operations on them. */
#include "device/lanczos.h"

#include "base/status.h"

int parts_open(struct parts *p, gidx bytes)
{
  *p = (struct parts){0};
  p->capacity_values = bytes / 10;
  p->capacity_borders = p->capacity_count = bytes / 100 + 1;
  TRY(arena_alloc(&p->arena, &p->at, p->capacity_count, sizeof *p->at));
  TRY(arena_alloc(&p->arena, &p->value_at, p->capacity_count, sizeof *p->value_at));
  TRY(arena_alloc(&p->arena, &p->width, p->capacity_count, sizeof *p->width));
  TRY(arena_alloc(&p->arena, &p->border, p->capacity_borders, sizeof *p->border));
  return arena_alloc(&p->arena, &p->value, p->capacity_values, sizeof *p->value);
}

void parts_close(struct parts *p)
{
  arena_free(&p->arena);
  *p = (struct parts){0};
}

int parts_fit(const struct parts *p, const struct joint_work *w, idx first, idx end, idx *fit)
{
  gidx values = p->values, borders = p->borders;
  *fit = 0;
  for (idx i = first; i < end; i++, ++*fit) {
    struct joint_size row;
    TRY(joint_row_size(w, i, &row));
    values += (gidx)row.width * row.width;
    borders += row.width;
    if (values > p->capacity_values || borders > p->capacity_borders ||
        p->count + i - first >= p->capacity_count)
      break;
  }
  return OK;
}

static int arrays_alloc(struct lanczos *l)
{
  gidx width = 8 * (gidx)l->groups;
  TRY(arena_alloc(&l->arena, &l->q, (gidx)l->max + 1, sizeof *l->q));
  for (idx j = 0; j <= l->max; j++) {
    real *vectors;
    TRY(arena_alloc(&l->arena, &vectors, width * l->n, sizeof *vectors));
    if (!l->arena.is_dry) l->q[j] = vectors;
  }
  TRY(arena_alloc(&l->arena, &l->alpha, width * l->max, sizeof(real)));
  return arena_alloc(&l->arena, &l->beta, width * l->max, sizeof(real));
}

gidx lanczos_bytes(idx n, idx groups, idx max)
{
  struct lanczos dry = {.n = n, .groups = groups, .max = max, .arena.is_dry = 1};
  return arrays_alloc(&dry) ? INT64_MAX : (gidx)dry.arena.bytes;
}

int lanczos_open(struct lanczos *l, idx n, idx groups, idx max)
{
  *l = (struct lanczos){.n = n, .groups = groups, .max = max};
  return arrays_alloc(l);
}

void lanczos_close(struct lanczos *l)
{
  arena_free(&l->arena);
  *l = (struct lanczos){0};
}
