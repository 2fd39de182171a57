/* SPDX-License-Identifier: BSD-3-Clause
 * Checks of codes, residuals and quality on any device against the references: in one step, and in
 * rounds that append atoms to the supports.  Some vectors are dropped. */
#ifndef TESTS_DEVICE_CODES_H
#define TESTS_DEVICE_CODES_H

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "device/codes.h"
#include "device_how.h"

enum {
  ATOMS = 300,
  MANY = 4500, /* so many rows that a block of a GPU takes several in turn */
  SIDES = 4,   /* the most sides: two variants of the CPU, each with one thread and with two */
};

/* The problem on a device. */
struct side {
  struct device dev;
  int threads;
  struct buffer rows, atoms, slot, state, residual, codes, quality;
};

struct problem {
  idx n, p, d, m, rounds;
  real rho;
  int nonnegative;
  int small; /* 1: atoms are small integers, and rows are sums of their atoms.  The residuals are
              * then only rounding, so that each bit of the f64 codes counts. */
  struct arena arena;
  float *rows, *atoms, *residual, *codes, *want_residual, *want_codes;
  idx *slot;
  struct row_quality *quality, *want_quality;
  const float **vector;
  real *work, *exact;
  struct side sides[SIDES]; /* each step is done on all sides before the next step */
  int count;
};

static int problem_alloc(struct problem *c)
{
  gidx rows = (gidx)c->n * c->p, codes = (gidx)c->n * c->m * c->d;
  TRY(arena_alloc(&c->arena, &c->rows, rows, sizeof(float)));
  TRY(arena_alloc(&c->arena, &c->residual, rows, sizeof(float)));
  TRY(arena_alloc(&c->arena, &c->want_residual, rows, sizeof(float)));
  TRY(arena_alloc(&c->arena, &c->atoms, (gidx)ATOMS * c->d * c->p, sizeof(float)));
  TRY(arena_alloc(&c->arena, &c->codes, codes, sizeof(float)));
  TRY(arena_alloc(&c->arena, &c->want_codes, codes, sizeof(float)));
  TRY(arena_alloc(&c->arena, &c->slot, (gidx)c->n * c->m, sizeof(idx)));
  TRY(arena_alloc(&c->arena, &c->quality, c->n, sizeof *c->quality));
  TRY(arena_alloc(&c->arena, &c->want_quality, c->n, sizeof *c->quality));
  TRY(arena_alloc(&c->arena, &c->vector, (gidx)c->m * c->d, sizeof *c->vector));
  TRY(arena_alloc(&c->arena, &c->exact, (gidx)c->m * c->d, sizeof(real)));
  return arena_alloc(&c->arena, &c->work, codes_work(c->m * c->d), sizeof(real));
}

/* 1: row i is random; 0: it is zero; -1: it is minus a sum of vectors of its atoms. */
static int row_weight(const struct problem *c, idx i)
{
  return c->n < 3 || i % 7 > 2 || i % 7 == 0 ? 1 : i % 7 - 2;
}

/* Fill rows, atoms and supports.  Unless c->small is set, four of each 13 consecutive atoms are
 * special.  One equals the atom before it.  One differs from the atom before it by a part in 10^7,
 * and is dropped.  One differs by a part in 10^4, and is kept.  One is zero. */
static void problem_fill(struct problem *c)
{
  gidx frame = (gidx)c->d * c->p;
  for (gidx i = 0; i < ATOMS * frame; i++) {
    gidx like = i / frame % 13;
    float normal = (float)random_normal(3, 1, (uint64_t)i);
    float before = i >= frame ? c->atoms[i - frame] : 0;
    c->atoms[i] = c->small     ? (float)random_below(3, 1, (uint64_t)i, 7) - 3
                  : like == 3  ? before
                  : like == 6  ? before + 1e-7f * normal
                  : like == 9  ? before + 1e-4f * normal
                  : like == 12 ? 0
                               : normal;
  }
  for (idx i = 0; i < c->n; i++) {
    idx first = (idx)random_below(3, 2, (uint64_t)i, ATOMS);
    for (idx a = 0; a < c->m; a++) c->slot[i * c->m + a] = (first + a) % ATOMS;
    for (idx k = 0; k < c->p; k++) {
      real x =
          c->small || row_weight(c, i) <= 0 ? 0 : random_normal(3, 4, (uint64_t)(i * c->p + k));
      for (idx a = 0; (c->small || row_weight(c, i) < 0) && a < c->m; a++)
        x += (c->small ? a % 5 - 2 : row_weight(c, i)) *
             (real)c->atoms[c->slot[i * c->m + a] * frame + a % c->d * c->p + k];
      c->rows[i * c->p + k] = (float)x;
    }
  }
}

/* Compute the references' results for the first m atoms of each support. */
static void problem_answer(struct problem *c, idx m)
{
  idx big_m = m * c->d;
  for (idx i = 0; i < c->n; i++) {
    const float *row = c->rows + (gidx)i * c->p;
    for (idx v = 0; v < big_m; v++)
      c->vector[v] = c->atoms + ((gidx)c->slot[i * c->m + v / c->d] * c->d + v % c->d) * c->p;
    if (c->nonnegative)
      codes_nonnegative_reference(row, c->vector, big_m, c->p, c->rho, c->exact, c->work);
    else
      codes_reference(row, c->vector, big_m, c->p, c->rho, c->exact, c->work);
    residual_reference(row, c->vector, big_m, c->p, c->exact, c->want_residual + (gidx)i * c->p);
    for (idx v = 0; v < big_m; v++) c->want_codes[(gidx)i * big_m + v] = (float)c->exact[v];
    c->want_quality[i] =
        quality_reference(row, c->vector, m, c->d, c->p, c->want_codes + (gidx)i * big_m);
  }
}

static int bits_equal(const void *a, const void *b, gidx count, size_t size)
{
  return !memcmp(a, b, (size_t)count * size);
}

/* Fill the results with rubbish, so that a number that the device does not write is noticed.
 * Otherwise the results of the side before could remain: all sides share the host arrays. */
static int rubbish_put(struct problem *c, struct side *on)
{
  memset(c->residual, 0x55, (size_t)c->n * (size_t)c->p * sizeof *c->residual);
  memset(c->codes, 0x55, (size_t)c->n * (size_t)(c->m * c->d) * sizeof *c->codes);
  memset(c->quality, 0x55, (size_t)c->n * sizeof *c->quality);
  TRY(device_put(&on->dev, &on->residual, 0, on->residual.bytes));
  TRY(device_put(&on->dev, &on->codes, 0, on->codes.bytes));
  return device_put(&on->dev, &on->quality, 0, on->quality.bytes);
}

/* Go from m_old to m_new atoms per row on a device, with its state if there is one, and compare. */
static int side_check(struct problem *c, struct side *on, idx m_old, idx m_new)
{
  struct device *dev = &on->dev;
  struct codes_job job = {.n = c->n,
                          .m_old = m_old,
                          .m_new = m_new,
                          .max_m = c->m,
                          .rho = c->rho,
                          .rows = &on->rows,
                          .atoms = &on->atoms,
                          .slot = &on->slot,
                          .state = on->state.bytes ? &on->state : NULL,
                          .residual = &on->residual,
                          .codes = &on->codes,
                          .quality = &on->quality};
  int status = rubbish_put(c, on);
  if (!status) status = device_codes(dev, &job);
  if (!status) status = device_get(dev, &on->residual, 0, on->residual.bytes);
  if (!status) status = device_get(dev, &on->codes, 0, on->codes.bytes);
  if (!status) status = device_get(dev, &on->quality, 0, on->quality.bytes);
  int good = !status &&
             bits_equal(c->residual, c->want_residual, (gidx)c->n * c->p, sizeof(float)) &&
             bits_equal(c->codes, c->want_codes, (gidx)c->n * m_new * c->d, sizeof(float)) &&
             bits_equal(c->quality, c->want_quality, c->n, sizeof *c->quality);
  if (!good)
    printf("# %s, %d threads: differs from %d to %d atoms\n", dev->variant, on->threads, m_old,
           m_new);
  return good;
}

/* Make one step on all sides.  The references are slow, so they run once for all sides. */
static int step_check(struct problem *c, idx m_old, idx m_new)
{
  int good = 1;
  problem_answer(c, m_new);
  for (int i = 0; i < c->count; i++) good &= side_check(c, &c->sides[i], m_old, m_new);
  return good;
}

/* Copy the problem to an open device. */
static int side_bring(struct problem *c, struct side *on)
{
  struct device *dev = &on->dev;
  gidx rows = (gidx)c->n * c->p * (gidx)sizeof(float), frame = (gidx)c->d * c->p;
  gidx atoms = ATOMS * frame * (gidx)sizeof(float), slots = (gidx)c->n * c->m * (gidx)sizeof(idx);
  TRY(buffer_wrap(dev, &on->rows, c->rows, rows));
  TRY(buffer_wrap(dev, &on->atoms, c->atoms, atoms));
  TRY(buffer_wrap(dev, &on->slot, c->slot, slots));
  TRY(buffer_wrap(dev, &on->residual, c->residual, rows));
  TRY(buffer_wrap(dev, &on->codes, c->codes, slots * c->d));
  TRY(buffer_wrap(dev, &on->quality, c->quality, c->n * (gidx)sizeof *c->quality));
  TRY(device_put(dev, &on->rows, 0, rows));
  TRY(device_put(dev, &on->atoms, 0, atoms));
  return device_put(dev, &on->slot, 0, slots);
}

/* Give a side a state, which begins as rubbish. */
static int side_begin(struct problem *c, struct side *on)
{
  gidx bytes = c->n * device_codes_state_bytes(&on->dev, c->m, c->rho);
  char *state;
  TRY(arena_alloc(&c->arena, &state, bytes, 1));
  TRY(buffer_wrap(&on->dev, &on->state, state, bytes));
  memset(state, 0xff, (size_t)bytes);
  return device_put(&on->dev, &on->state, 0, bytes);
}

static void side_leave(struct side *on)
{
  struct buffer *const all[] = {&on->rows,     &on->atoms, &on->slot,   &on->state,
                                &on->residual, &on->codes, &on->quality};
  for (int i = 0; i < LENGTH(all); i++) buffer_free(&on->dev, all[i]);
  device_close(&on->dev);
}

/* Go back to the first half of the supports, and append other atoms.  Do the same again with the
 * former atoms. */
static int return_check(struct problem *c)
{
  int good = 1;
  for (int turn = 0; turn < 2; turn++) {
    for (idx i = 0; i < c->n; i++)
      for (idx a = c->m / 2; a < c->m; a++)
        c->slot[i * c->m + a] = (c->slot[i * c->m + a] + ATOMS / 2) % ATOMS;
    for (int i = 0; i < c->count; i++) {
      struct side *on = &c->sides[i];
      good &= device_put(&on->dev, &on->slot, 0, on->slot.bytes) == OK;
    }
    good &= step_check(c, c->m / 2, c->m);
  }
  return good;
}

/* One step without a state, then rounds with a state, then return_check(). */
static int problem_check(struct problem *c)
{
  int good = step_check(c, 0, c->m);
  for (int i = 0; i < c->count; i++) good &= side_begin(c, &c->sides[i]) == OK;
  for (idx r = 1; good && r <= c->rounds; r++)
    good &= step_check(c, round_end(c->m, c->rounds, r - 1), round_end(c->m, c->rounds, r));
  return good && return_check(c);
}

/* Open a side for each of `hows` and each number of threads. */
static int sides_open(struct problem *c, const struct how *hows, int count)
{
  for (int v = 0; v < count; v++)
    for (int threads = 1; threads <= hows[v].threads; threads++) {
      struct side *on = &c->sides[c->count];
      struct device_options options = how_options(&hows[v], c->p, c->d, 0);
      CHECK(c->count < SIDES, ERR_INTERNAL, "more than %d devices", SIDES);
      options.threads = on->threads = threads;
      options.nonnegative = c->nonnegative;
      c->count++;
      TRY(device_open(&on->dev, &options));
      TRY(side_bring(c, on));
    }
  return OK;
}

static void problem_run(struct problem c, const struct how *hows, int count)
{
  int good = problem_alloc(&c) == OK;
  problem_fill(&c);
  good = good && sides_open(&c, hows, count) == OK && c.count > 0 && problem_check(&c);
  for (int i = 0; i < c.count; i++) side_leave(&c.sides[i]);
  if (!good && *status_message()) printf("# %s\n", status_message());
  status_clear();
  ok(good, "n=%d p=%d d=%d m=%d rounds=%d rho=%g small=%d nonnegative=%d", c.n, c.p, c.d, c.m,
     c.rounds, c.rho, c.small, c.nonnegative);
  arena_free(&c.arena);
}

static void check_codes(const struct how *hows, int count)
{
  static const struct problem problems[] = {
      {.n = 0, .p = 8, .d = 1, .m = 3, .rounds = 1},
      {.n = 1, .p = 1, .d = 1, .m = 1, .rounds = 1},
      {.n = 40, .p = 64, .d = 1, .m = 1, .rounds = 1},
      {.n = 19, .p = 17, .d = 1, .m = 5, .rounds = 5},
      {.n = 20, .p = 384, .d = 1, .m = 32, .rounds = 4},
      {.n = 3, .p = 130, .d = 1, .m = 33, .rounds = 33},
      {.n = 3, .p = 100, .d = 1, .m = 90, .rounds = 7},
      {.n = 10, .p = 20, .d = 1, .m = 60, .rounds = 3},
      {.n = 20, .p = 65, .d = 3, .m = 13, .rounds = 3},
      {.n = 7, .p = 96, .d = 8, .m = 16, .rounds = 5},
      {.n = 3, .p = 31, .d = 8, .m = 6, .rounds = 2},
      {.n = 3, .p = 200, .d = 1, .m = 130, .rounds = 3},
      {.n = 2, .p = 50, .d = 8, .m = 40, .rounds = 3},
      {.n = 2, .p = 320, .d = 4, .m = 75, .rounds = 2},
      {.n = 9, .p = 30, .d = 1, .m = 32, .rounds = 32},
      {.n = 9, .p = 48, .d = 1, .m = 31, .rounds = 1},
      {.n = 5, .p = 47, .d = 1, .m = 64, .rounds = 8},
      {.n = 3, .p = 90, .d = 1, .m = 100, .rounds = 4},
      {.n = 3, .p = 280, .d = 1, .m = 256, .rounds = 3},
      {.n = MANY, .p = 4, .d = 1, .m = 34, .rounds = 2},
  };

  static const real rhos[] = {0.1, 0, 1e-12}; /* bits for 1e-12 show in which order rho is added */
  int is_less = is_small(), is_half = !is_full() && !strcmp(hows->kind, "cpu");
  int step = (is_less ? 4 : 1) * (1 + is_half);

  claim_begin("codes, residuals and quality: the references' bits, in one go and in rounds");
  for (int i = 0; i < LENGTH(problems); i++)
    /* u: nonnegative (u / 6), small (u / 3 % 2) and rho (u % 3).  A small test takes every fourth
     * u.  With is_half a shape takes half of these, and the next shape the other half. */
    for (int u = is_half ? i % 2 * step / 2 : 0; u < 12; u += step) {
      struct problem c = problems[i];
      c.nonnegative = u >= 6;
      if (c.nonnegative && c.d > 1) continue;
      if (c.n == MANY && (strcmp(hows->kind, "cuda") != 0 || (is_less && u > 0))) continue;
      c.small = u / 3 % 2;
      c.rho = rhos[u % 3];
      problem_run(c, hows, count);
    }
  claim_end();
}

#endif
