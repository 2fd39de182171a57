/* SPDX-License-Identifier: BSD-3-Clause
 * Checks of routing on any device against the reference, with many shapes, and with kinds of data
 * that show faults. */
#ifndef TESTS_DEVICE_ROUTE_H
#define TESTS_DEVICE_ROUTE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "device_how.h"

enum kind {
  RANDOM,
  FIXTURE,
  TIES,
  NEAR,
  ZERO,
  TINY,
  BAD,
  SCALED,
  HEAVY,
  ASCENDING,
  DUPLICATES,
  SUBNORMAL,
  LAST_BIT,
  NEGATIVE,
  FEW,
  EDGE,
  LOWER,
  EXTREME,
  KINDS
};

/* A problem and the reference's result. */
struct problem {
  idx n, p, d, top_k, k, tile, excluded;
  int shuffled, nonnegative;
  enum kind kind;
  struct arena arena;
  float *rows, *atoms;
  idx *atom_of, *barred;
  struct entry *lists, *found;
  struct bad_score bad;
  struct screen_counts filter; /* counts of the last problem_check() */
};

/* The values of a row of EDGE, by column; each row has them multiplied by a power of two. */
static float edge_value(gidx column)
{
  return (float)fabs(random_normal(7, 94, (uint64_t)column));
}

/* Are all scores of this kind of data finite? */
__attribute__((unused)) static int is_finite_kind(enum kind kind)
{
  return kind != BAD && kind != LOWER;
}

static float value(const struct problem *c, int atom, gidx i)
{
  gidx row = i / c->p, column = i % c->p;
  float normal = (float)random_normal(7, (uint64_t)(atom + 2 * c->kind), (uint64_t)i);
  switch (c->kind) {
  case FIXTURE:
    return (float)(atom ? cos(0.011 * (double)(7 * row + 5 * column))
                        : 0.9 * sin(0.013 * (double)(31 * row + 17 * column)));
  case TIES: /* few values, so many scores are equal */
    return (float)(random_below(7, (uint64_t)atom, (uint64_t)(row % 9 * c->p + column), 3)) - 1;
  case NEAR: /* all atoms are equal except for their last bits */
    return atom ? (float)random_normal(7, 99, (uint64_t)column) + 1e-7f * normal : normal;
  case ZERO:
    return atom || row % 2 ? normal : 0;
  case TINY:
    return normal * (atom ? 0x1p-70f : 0x1p-72f);
  case BAD:
    if (!atom && row % 5 == 3) return normal * 0x1p126f;
    return atom && i % 331 == 330 ? (i % 2 ? INFINITY : NAN) : normal;
  case SCALED: /* rows have very different sizes */
    return atom ? normal : ldexpf(normal, (int)(row * 17 % 121) - 60);
  case HEAVY: /* heavy tails, as of Student's t with 1.2 degrees of freedom */
    return normal * (float)pow(0x1p-30 * (real)(1 + random_below(8, (uint64_t)atom, (uint64_t)i,
                                                                 UINT64_C(1) << 30)),
                               -1 / 1.2);
  case ASCENDING: /* equal rows; each atom is nearer to them than the one before */
    return atom ? (float)random_normal(7, 98, (uint64_t)column) * (float)row / (float)c->k + normal
                : (float)random_normal(7, 98, (uint64_t)column);
  case DUPLICATES: /* atoms repeat after every 37 */
    return atom ? (float)random_normal(7, 97, (uint64_t)(row % (37 * c->d) * c->p + column))
                : normal;
  case SUBNORMAL:
    return normal * (atom ? 1 : 0x1p-140f);
  case LAST_BIT: /* pairs of atoms that differ in the last bit of one column */
    normal = (float)random_normal(7, 96, (uint64_t)(row / (2 * c->d) * c->p + column));
    if (atom) return row % 2 && column == row % c->p ? nextafterf(normal, INFINITY) : normal;
    return (float)random_normal(7, 95, (uint64_t)i);
  case NEGATIVE: /* all scores are negative */
    return atom ? -fabsf(normal) : fabsf(normal);
  case FEW: /* few scores are positive */
    return atom && row % 50 != 7 ? -fabsf(normal) : fabsf(normal);
  case EDGE: /* some scores cancel, so that rounding decides their sign; others are far below 0 */
    if (!atom) return ldexpf(edge_value(column), (int)(row % 5));
    if (row % 20 != 3) return -fabsf(normal);
    normal = (float)random_normal(7, 93, (uint64_t)(row * c->p + column / 2));
    return column % 2 ? -normal * edge_value(column - 1) : normal * edge_value(column + 1);
  case LOWER: /* the score of the last atom is minus infinity */
    if (column) return normal;
    return !atom ? fabsf(normal) : row == (gidx)c->k * c->d - 1 ? -INFINITY : normal;
  case EXTREME: /* rows of every size that float32 has, in no order */
    return atom ? normal : ldexpf(normal, (int)(row * 37 % 260) - 145);
  default:
    return normal;
  }
}

static int problem_make(struct problem *c)
{
  gidx rows = (gidx)c->n * c->p, atoms = (gidx)c->k * c->d * c->p;
  TRY(arena_alloc(&c->arena, &c->rows, rows, sizeof(float)));
  TRY(arena_alloc(&c->arena, &c->atoms, atoms, sizeof(float)));
  TRY(arena_alloc(&c->arena, &c->atom_of, c->k, sizeof(idx)));
  TRY(arena_alloc(&c->arena, &c->barred, (gidx)c->n * (c->excluded + 1), sizeof(idx)));
  TRY(arena_alloc(&c->arena, &c->lists, (gidx)c->n * c->top_k, sizeof(struct entry)));
  TRY(arena_alloc(&c->arena, &c->found, (gidx)c->n * c->top_k, sizeof(struct entry)));
  for (gidx i = 0; i < rows; i++) c->rows[i] = value(c, 0, i);
  for (gidx i = 0; i < atoms; i++) c->atoms[i] = value(c, 1, i);
  for (idx a = 0; a < c->k; a++) c->atom_of[a] = a + 1000;
  return OK;
}

/* The reference's result.  If c->excluded is not 0, the first `excluded` atoms of each row's list
 * are then excluded, and the rows are routed again. */
static void problem_answer(struct problem *c)
{
  struct exclusions barred = {c->barred, c->excluded, c->excluded + 1};
  struct route_reference r = {.n = c->n,
                              .p = c->p,
                              .d = c->d,
                              .top_k = c->top_k,
                              .count = c->k,
                              .nonnegative = c->nonnegative,
                              .rows = c->rows,
                              .atoms = c->atoms,
                              .atom_of = c->atom_of};
  c->bad = (struct bad_score){-1, -1};
  if (route_reference(&r, c->lists, &c->bad)) exit(1);
  if (!c->excluded) return;
  for (idx i = 0; i < c->n; i++)
    for (idx j = 0; j < c->excluded; j++)
      c->barred[i * (c->excluded + 1) + j] = j < c->top_k ? c->lists[i * c->top_k + j].atom : -1;
  r.excluded = barred;
  if (route_reference(&r, c->lists, &c->bad)) exit(1);
}

/* Put the tiles in order.  If c->shuffled is set, put the odd ones first, in descending order. */
static int shard_put(const struct problem *c, struct device *dev)
{
  idx tiles = (c->k + c->tile - 1) / c->tile;
  for (idx t = 0; t < tiles; t++) {
    idx at = !c->shuffled ? t : t < tiles / 2 ? tiles / 2 * 2 - 1 - 2 * t : (t - tiles / 2) * 2;
    idx first = at * c->tile, count = c->k - first < c->tile ? c->k - first : c->tile;
    TRY(device_put_tile(dev, c->atoms + (gidx)first * c->d * c->p, count, first + 1000));
  }
  return OK;
}

static int lists_equal(const struct problem *c)
{
  for (gidx i = 0; i < (gidx)c->n * c->top_k; i++)
    if (memcmp(&c->lists[i].value, &c->found[i].value, sizeof(float)) ||
        c->lists[i].atom != c->found[i].atom)
      return 0;
  return 1;
}

/* Is power[i] the power of row i by route_power()?  Returns 1 if power is NULL (single atoms). */
static int powers_equal(const struct problem *c, const idx *power)
{
  for (idx i = 0; power && i < c->n; i++)
    if (power[i] != route_power(c->rows + (gidx)i * c->p, c->p)) return 0;
  return 1;
}

/* 1 if lists, powers and bad score of the device are those of the reference, otherwise 0. */
static int problem_check(struct problem *c, const struct how *how, int threads)
{
  struct device dev = {0};
  struct device_options options = how_options(how, c->p, c->d, c->k);
  struct buffer rows = {0}, lists = {0}, power = {0};
  struct route_job job = {.rows = &rows,
                          .n = c->n,
                          .top_k = c->top_k,
                          .excluded = {c->barred, c->excluded, c->excluded + 1},
                          .lists = &lists,
                          .power = c->d > 1 ? &power : NULL};
  gidx row_bytes = (gidx)c->n * c->p * (gidx)sizeof(float);
  gidx list_bytes = (gidx)c->n * c->top_k * (gidx)sizeof(struct entry);
  options.threads = threads;
  options.nonnegative = c->nonnegative;
  memset(c->found, 0x55, (size_t)list_bytes);
  int status = device_open(&dev, &options);
  if (!status) status = shard_put(c, &dev);
  if (!status) status = buffer_wrap(&dev, &rows, c->rows, row_bytes);
  if (!status) status = buffer_wrap(&dev, &lists, c->found, list_bytes);
  if (!status && job.power) status = buffer_alloc(&dev, &power, (c->n + 1) * (gidx)sizeof(idx));
  if (!status) status = device_put(&dev, &rows, 0, row_bytes);
  if (!status) status = device_put(&dev, &lists, 0, list_bytes);
  if (!status) status = device_route(&dev, &job);
  if (!status) status = device_get(&dev, &lists, 0, list_bytes);
  c->filter = dev.filter;
  int powers = status || powers_equal(c, power.host);
  buffer_free(&dev, &power);
  buffer_free(&dev, &rows);
  buffer_free(&dev, &lists);
  device_close(&dev);
  if (status) printf("# %s\n", status_message());
  if (status || job.bad.row != c->bad.row || job.bad.atom != c->bad.atom) return 0;
  return powers && lists_equal(c);
}

static void problem_run(struct problem c, const struct how *hows, int count)
{
  int good = problem_make(&c) == OK, ran = 0;
  problem_answer(&c);
  for (int v = 0; v < count; v++)
    for (int threads = 1; threads <= hows[v].threads; threads++, ran++)
      if (!problem_check(&c, &hows[v], threads)) {
        printf("# differs: %s %s, %d threads\n", hows[v].kind, hows[v].variant, threads);
        good = 0;
      }
  ok(good && ran,
     "n=%d p=%d d=%d top_k=%d k=%d tile=%d shuffled=%d excluded=%d kind=%d nonnegative=%d", c.n,
     c.p, c.d, c.top_k, c.k, c.tile, c.shuffled, c.excluded, c.kind, c.nonnegative);
  arena_free(&c.arena);
}

static void check_shapes(const struct how *hows, int count)
{
  static const idx ns[] = {0, 1, 5, 6, 7, 97, 200}, ps[] = {1, 2, 17, 64, 384};
  static const idx ks[] = {0, 1, 5, 15, 16, 17, 31, 33, 1000}, top_ks[] = {1, 4, 32, 256};
  int less = is_small() && !strcmp(hows->kind, "cpu");
  for (int i = 0; i < LENGTH(ns) - less; i++)
    for (int j = 0; j < LENGTH(ks); j++) {
      int u = i * LENGTH(ks) + j;
      problem_run((struct problem){.n = ns[i],
                                   .p = ps[(i + j) % 5],
                                   .d = u % 3 ? 1 : 1 + u / 3 % 8,
                                   .top_k = top_ks[u % 4],
                                   .k = less && ks[j] > 400 ? 400 : ks[j],
                                   .tile = 1 + u * 7 % 60,
                                   .excluded = u % 4 == 2 ? 3 : 0,
                                   .shuffled = u % 2,
                                   .nonnegative = u % 3 == 1,
                                   .kind = (enum kind)(u % KINDS)},
                  hows, count);
    }
}

/* Every kind of data, with single atoms and with frames, with tiles in order and not.  The last two
 * of six runs are for nonnegative codes. */
static void check_kinds(const struct how *hows, int count)
{
  int less = is_small() && !strcmp(hows->kind, "cpu");
  for (int kind = 0; kind < KINDS; kind++)
    for (int u = 0; u < 6; u++)
      problem_run((struct problem){.n = less ? 31 : 61,
                                   .p = 48,
                                   .d = u < 2 || u > 3 ? 1 : 2 + kind % 7,
                                   .top_k = u % 2 ? 32 : 4,
                                   .k = less ? 700 : 1500,
                                   .tile = 100 + 28 * u,
                                   .excluded = u == 1 || u == 5 ? 4 : 0,
                                   .shuffled = u % 2,
                                   .nonnegative = u > 3,
                                   .kind = (enum kind)kind},
                  hows, count);
}

#endif
