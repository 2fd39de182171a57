/* SPDX-License-Identifier: BSD-3-Clause
 * A row sends its codes, its products with frame and directions, and its objective; the owner makes
 * blocks of them. */
#include "stage/assemble.h"

#include <math.h>
#include <string.h>

#include "base/order.h"
#include "base/status.h"
#include "device/refit.h"
#include "model/assembly.h"
#include "stage/directions.h"

struct work {
  struct assembly *a;
  struct fit *f;
  const struct batch *b;
  idx width; /* reals a row sends */
  struct arena arena;
  real *vectors;  /* [count][d + q][p] frame and directions */
  real *values;   /* [own rows][width] */
  real *gathered; /* [whole rows of own members][width] */
  struct rows_item *items;
};

gidx assembly_reals(const struct fit *f, idx q)
{
  return (2 * (gidx)q + 4 * (gidx)f->d) * f->p;
}

static int work_take(struct work *w)
{
  const struct batch *b = w->b;
  gidx p = w->f->p, d = w->f->d, rows = b->start[b->count];
  TRY(arena_take(&w->arena, &w->vectors, b->count * (d + w->a->q) * p, sizeof(real)));
  TRY(arena_take(&w->arena, &w->values, rows * w->width, sizeof(real)));
  TRY(arena_take(&w->arena, &w->gathered, b->whole[b->mine] * w->width, sizeof(real)));
  return arena_take(&w->arena, &w->items, b->segments, sizeof *w->items);
}

/* Products of every own row with U and E: values[row][d ..]. */
static int rows_products(struct work *w)
{
  const struct fit *f = w->f;
  const struct batch *b = w->b;
  gidx p = f->p, d = f->d, q = w->a->q, each = (d + q) * p;
  for (idx m = 0; m < b->count; m++) {
    real *to = w->vectors + m * each;
    memcpy(to, f->frames + b->atom[m] * d * p, (size_t)(d * p) * sizeof *to);
    memcpy(to + d * p, w->a->e + m * q * p, (size_t)(w->a->kept[m] * p) * sizeof *to);
  }
  for (gidx g = 0; g < b->segments; g++) {
    const struct segment *s = b->segment + g;
    w->items[g] = (struct rows_item){.rows = b->rows + s->at,
                                     .n = s->n,
                                     .vectors = w->vectors + s->member * each,
                                     .count = (idx)d + w->a->kept[s->member],
                                     .stride = w->width,
                                     .out = w->values + s->at * w->width + d};
  }
  return device_row_products(&w->f->device, f->residual, f->p, w->items, b->segments);
}

/* Codes, and the objective in the last place. */
static int rows_objectives(struct work *w)
{
  const struct fit *f = w->f;
  const struct batch *b = w->b;
  for (gidx g = 0; g < b->segments; g++) {
    w->items[g].vectors = NULL;
    w->items[g].count = 1;
    w->items[g].out = w->values + b->segment[g].at * w->width + (w->width - 1);
  }
  TRY(device_row_products(&w->f->device, f->residual, f->p, w->items, b->segments));
  for (gidx i = 0; i < b->start[b->count]; i++) {
    const real *t = b->codes + i * f->d;
    real *row = w->values + i * w->width, *objective = row + w->width - 1;
    memcpy(row, t, (size_t)f->d * sizeof *row);
    *objective = fma(f->rho, chain_dot(t, t, f->d), *objective);
  }
  return OK;
}

static int systems_take(struct work *w)
{
  const struct batch *b = w->b;
  struct arena *arena = &w->a->arena;
  gidx d = w->f->d;
  for (idx i = 0; i < b->mine; i++) {
    struct arrow_system *s = w->a->system + i;
    gidx n = b->whole[i + 1] - b->whole[i], k = d * w->a->kept[b->mine_first + i];
    real *h, *rows_b, *g, *c, *hb;
    TRY(arena_take(arena, &h, n * d * d, sizeof *h));
    TRY(arena_take(arena, &rows_b, n * d * k, sizeof *rows_b));
    TRY(arena_take(arena, &g, n * d, sizeof *g));
    TRY(arena_take(arena, &c, k * k, sizeof *c));
    TRY(arena_take(arena, &hb, k, sizeof *hb));
    *s = (struct arrow_system){(idx)d, (idx)k, n, h, rows_b, g, c, hb};
  }
  return OK;
}

/* The system of own member i, written through pointers that the struct lends as const. */
static void system_fill(void *self, gidx i)
{
  struct work *w = self;
  const struct fit *f = w->f;
  idx member = w->b->mine_first + (idx)i, d = f->d, q = w->a->kept[member];
  struct arrow_system *s = w->a->system + i;
  real *h = (real *)s->h, *b = (real *)s->b, *g = (real *)s->g;
  const real *values = w->gathered + w->b->whole[i] * w->width;
  struct frame_products products;
  struct lane_sum before = {0};
  frame_products(f->frames + (gidx)w->b->atom[member] * d * f->p,
                 w->a->e + (gidx)member * w->a->q * f->p, d, q, f->p, &products);
  for (gidx row = 0; row < s->n; row++) {
    const real *value = values + row * w->width;
    assembly_row(&products, f->rho, value, h + row * d * d, b + row * d * s->k, g + row * d);
    lane_sum_fma(&before, row, value[w->width - 1], 1);
  }
  assembly_border(&products, s->n, values, w->width, (real *)s->c, (real *)s->hb);
  w->a->before[i] = lane_sum_total(&before);
}

static int assembly_take(struct assembly *a, const struct fit *f, const struct batch *b)
{
  TRY(arena_take(&a->directions, &a->e, (gidx)b->count * a->q * f->p, sizeof *a->e));
  TRY(arena_take(&a->arena, &a->kept, b->count, sizeof *a->kept));
  TRY(arena_take(&a->arena, &a->system, b->mine, sizeof *a->system));
  return arena_take(&a->arena, &a->before, b->mine, sizeof *a->before);
}

int assembly_make(struct assembly *a, struct fit *f, const struct batch *b, idx q)
{
  struct work w = {.a = a, .f = f, .b = b, .width = 2 * f->d + q + 1};
  *a = (struct assembly){.q = q};
  TRY(comm_agree(f->c, assembly_take(a, f, b)));
  TRY(directions_find(f, b, q, a->e, a->kept));
  int status = work_take(&w);
  if (!status) status = rows_products(&w);
  if (!status) status = rows_objectives(&w);
  if (!status) status = systems_take(&w);
  TRY(comm_agree(f->c, status));
  TRY(batch_rows_to_owner(b, f, w.values, w.width, w.gathered));
  device_share(&f->device, b->mine, system_fill, &w);
  arena_free(&w.arena);
  return OK;
}

void assembly_free(struct assembly *a)
{
  arena_free(&a->arena);
  arena_free(&a->directions);
  *a = (struct assembly){0};
}
