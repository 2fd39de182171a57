/* SPDX-License-Identifier: BSD-3-Clause
 * For each row of an atom, the atom's owner receives the codes, the products with frame and
 * directions, and the objective.  From these it makes the blocks of the system. */
#include "refit/batch_systems.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/sums.h"
#include "base/status.h"
#include "base/team.h"
#include "device/refit.h"
#include "model/assembly.h"
#include "refit/directions.h"

struct work {
  struct batch_systems *a;
  struct refit_state *f;
  const struct atom_batch *b;
  idx width; /* reals that a row sends */
  struct arena arena;
  real *vectors;  /* [count][d + q][p] frame and directions */
  real *values;   /* [own_rows][width] */
  real *gathered; /* [owner_rows][width] */
  struct rows_item *items;
};

static int work_alloc(struct work *w)
{
  const struct atom_batch *b = w->b;
  gidx p = w->f->p, d = w->f->d;
  TRY(arena_alloc(&w->arena, &w->vectors, b->count * (d + w->a->q) * p, sizeof(real)));
  TRY(arena_alloc(&w->arena, &w->values, b->own_rows * w->width, sizeof(real)));
  TRY(arena_alloc(&w->arena, &w->gathered, b->owner_rows * w->width, sizeof(real)));
  return arena_alloc(&w->arena, &w->items, b->segments, sizeof *w->items);
}

/* values[row][d ..] <- the products of every own row with its atom's frame and directions. */
static int rows_products(struct work *w)
{
  const struct refit_state *f = w->f;
  const struct atom_batch *b = w->b;
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

/* values[row][0 .. d - 1] <- the codes; the last value <- the row's objective. */
static int rows_objectives(struct work *w)
{
  const struct refit_state *f = w->f;
  const struct atom_batch *b = w->b;
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

/* Until the directions are known, a member counts as having all q of them.  In a dry batch the
 * first member has all rows, which needs as much memory as if they were divided. */
struct arrow_system batch_systems_shape(const struct batch_systems *a, const struct refit_state *f,
                                        const struct atom_batch *b, idx i)
{
  struct arrow_system s = {.d = f->d, .k = f->d * a->q, .n = i ? 0 : b->owner_rows};
  if (a->kept) s.k = f->d * a->kept[b->mine_first + i];
  if (b->whole) s.n = b->whole[i + 1] - b->whole[i];
  return s;
}

static int systems_alloc(struct batch_systems *a, const struct refit_state *f,
                         const struct atom_batch *b)
{
  struct arena *arena = &a->arena;
  for (idx i = 0; i < b->mine; i++) {
    struct arrow_system s = batch_systems_shape(a, f, b, i);
    gidx n = s.n, d = s.d, k = s.k;
    TRY(arena_alloc(arena, &s.h, n * d * d, sizeof *s.h));
    TRY(arena_alloc(arena, &s.b, n * d * k, sizeof *s.b));
    TRY(arena_alloc(arena, &s.g, n * d, sizeof *s.g));
    TRY(arena_alloc(arena, &s.c, k * k, sizeof *s.c));
    TRY(arena_alloc(arena, &s.g_b, k, sizeof *s.g_b));
    if (!arena->is_dry) a->system[i] = s;
  }
  return OK;
}

/* Fill the system of own member i: its arrays are const in the struct, but belong to us. */
static void system_fill(void *self, gidx i)
{
  struct work *w = self;
  const struct refit_state *f = w->f;
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
  assembly_border(&products, s->n, values, w->width, (real *)s->c, (real *)s->g_b);
  w->a->before[i] = lane_sum_total(&before);
}

/* Allocate what is needed before the directions are known. */
static int members_alloc(struct batch_systems *a, const struct refit_state *f,
                         const struct atom_batch *b)
{
  TRY(arena_alloc(&a->directions, &a->e, (gidx)b->count * a->q * f->p, sizeof *a->e));
  TRY(arena_alloc(&a->arena, &a->kept, b->count, sizeof *a->kept));
  TRY(arena_alloc(&a->arena, &a->system, b->mine, sizeof *a->system));
  return arena_alloc(&a->arena, &a->before, b->mine, sizeof *a->before);
}

/* Number of reals that are sent per row: codes, products with frame and directions, objective. */
static idx row_width(const struct refit_state *f, idx q)
{
  return row_products(f->d, q) + 1;
}

int batch_systems_bytes(const struct refit_state *f, const struct atom_batch *b, idx q,
                        struct batch_systems_bytes *bytes)
{
  struct batch_systems a = {.q = q, .arena.is_dry = 1, .directions.is_dry = 1};
  struct work w = {.a = &a, .f = (struct refit_state *)f, .b = b, .width = row_width(f, q)};
  gidx search, received;
  w.arena.is_dry = 1;
  TRY(members_alloc(&a, f, b));
  TRY(directions_find_bytes(f, b, q, &search));
  search += (gidx)(a.arena.bytes + a.directions.bytes);
  TRY(work_alloc(&w));
  TRY(systems_alloc(&a, f, b));
  TRY(atom_batch_rows_bytes(b, f, w.width, &received));
  bytes->held = (gidx)(a.arena.bytes + a.directions.bytes);
  bytes->peak = imax(search, bytes->held + (gidx)w.arena.bytes + received);
  return OK;
}

int batch_systems_make(struct batch_systems *a, struct refit_state *f, const struct atom_batch *b,
                       idx q)
{
  struct work w = {.a = a, .f = f, .b = b, .width = row_width(f, q)};
  *a = (struct batch_systems){.q = q};
  if (comm_proceeds(f->c)) TRY(comm_record_needed(f->c, members_alloc(a, f, b)));
  TRY(directions_find(f, b, q, a->e, a->kept));
  if (comm_proceeds(f->c)) TRY(comm_record_needed(f->c, work_alloc(&w)));
  if (comm_proceeds(f->c)) TRY(comm_record_needed(f->c, systems_alloc(a, f, b)));
  if (!comm_failure(f->c)) comm_record(f->c, rows_products(&w));
  if (!comm_failure(f->c)) comm_record(f->c, rows_objectives(&w));
  TRY(atom_batch_rows_to_owner(b, f, w.values, w.width, w.gathered));
  team_run(f->task->threads, b->mine, system_fill, &w);
  arena_free(&w.arena);
  return OK;
}

void batch_systems_free(struct batch_systems *a)
{
  arena_free(&a->arena);
  arena_free(&a->directions);
  *a = (struct batch_systems){0};
}
