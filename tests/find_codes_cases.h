/* SPDX-License-Identifier: BSD-3-Clause
 * Checks on any device that the codes of rows on their active atoms are those of the plain loops,
 * both for a batch and with thresholds.  Cases have ties, equal atoms, rows of zeros, and more
 * atoms than columns. */
#ifndef TESTS_FIND_CODES_CASES_H
#define TESTS_FIND_CODES_CASES_H

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "encode/active.h"
#include "device_how.h"

struct shape {
  idx n, k, p;
  real l0, rho;
  int looks, kind; /* kind 0: random; 1: few values, so that scores are equal; 2: row 0 times 100 */
  int relative;
};

struct problem {
  const struct shape *shape;
  struct find_rows rows;
  float *x, *atoms, *toward, *codes, *wanted, *left;
  struct active active;
  struct device device;
  struct buffer all;
  struct arena arena;
};

static float value_of(const struct shape *s, uint64_t stream, gidx i)
{
  if (s->kind == 1) return (float)random_below(5, stream, (uint64_t)i, 3) - 1;
  return (float)random_normal(5, stream, (uint64_t)i);
}

static int problem_open(struct problem *q, const struct shape *s, const struct how *how,
                        int threads)
{
  gidx n = s->n, k = s->k, p = s->p;
  struct device_options options = how_options(how, s->p, 1, 0);
  options.nonnegative = 1;
  options.threads = threads;
  *q = (struct problem){.shape = s};
  TRY(arena_alloc(&q->arena, &q->x, n * p, sizeof(float)));
  TRY(arena_alloc(&q->arena, &q->atoms, k * p, sizeof(float)));
  TRY(arena_alloc(&q->arena, &q->toward, k, sizeof(float)));
  TRY(arena_alloc(&q->arena, &q->codes, n * k, sizeof(float)));
  TRY(arena_alloc(&q->arena, &q->wanted, n * k, sizeof(float)));
  TRY(arena_alloc(&q->arena, &q->left, n * p, sizeof(float)));
  for (gidx i = 0; i < n * p; i++) q->x[i] = i / p % 7 == 3 ? 0 : value_of(s, 1, i);
  for (gidx i = 0; i < p && s->kind == 2; i++) q->x[i] *= 100;
  for (gidx i = 0; i < k * p; i++) q->atoms[i] = value_of(s, 2, i / p % 9 == 4 ? i - p : i);
  for (gidx a = 0; a < k; a++) q->toward[a] = 0.25f * (float)(a % 5);
  q->rows =
      (struct find_rows){s->n, s->k, s->p, q->x, q->atoms, q->toward, s->rho, s->relative, 0.5};
  TRY(device_open(&q->device, &options));
  q->active = (struct active){.device = &q->device,
                              .most_k = s->k + 3,
                              .p = s->p,
                              .most_n = s->n,
                              .entries = n * k,
                              .relative = s->relative,
                              .floor = 0.5};
  TRY(active_open(&q->active));
  TRY(buffer_wrap(&q->device, &q->all, q->x, n * p * (gidx)sizeof(float)));
  return device_put(&q->device, &q->all, 0, n * p * (gidx)sizeof(float));
}

static void problem_close(struct problem *q)
{
  buffer_free(&q->device, &q->all);
  active_close(&q->active);
  device_close(&q->device);
  arena_free(&q->arena);
}

/* Find the cut of the scores, digit by digit; all rows are on this rank. */
static int cut_find(struct active *a, struct batch_cut *cut)
{
  while (cut->digits < BATCH_DIGITS) {
    gidx counts[BATCH_BINS];
    TRY(active_count(a, cut, counts));
    batch_cut_narrow(cut, counts);
  }
  return OK;
}

/* q->codes <- the codes of the current rows, the first of which is row `first`. */
static void codes_spread(struct problem *q, idx first)
{
  const struct active *a = &q->active;
  float *codes = q->codes + (gidx)first * q->shape->k;
  memset(codes, 0, (size_t)a->n * (size_t)q->shape->k * sizeof *codes);
  for (idx i = 0; i < a->n; i++)
    for (gidx e = a->start[i]; e < a->start[i + 1]; e++)
      codes[(gidx)i * q->shape->k + a->index[e]] = a->code[e];
}

/* Encode all rows with room for only k entries, so that they come in several pieces. */
static int pieces_encode(struct problem *q, const struct found_encoder *by, int *pieces)
{
  struct active *a = &q->active;
  gidx room = a->entries;
  int status = OK;
  a->entries = a->k;
  *pieces = 0;
  for (idx first = 0, n; first < q->shape->n && !status; first += n) {
    n = q->shape->n - first;
    status = active_encode_some(a, &q->all, first, &n, by);
    if (!status) codes_spread(q, first);
    ++*pieces;
  }
  a->entries = room;
  return status;
}

static int batch_run(struct problem *q, float *least)
{
  const struct shape *s = q->shape;
  struct active *a = &q->active;
  TRY(active_atoms(a, q->atoms, s->k, q->toward));
  TRY(active_score(a, &q->all, 0, s->n));
  for (int look = 0; look <= s->looks; look++) {
    struct batch_cut cut = batch_cut_begin(batch_most(s->l0, s->n));
    if (look) TRY(active_again(a));
    TRY(cut_find(a, &cut));
    TRY(active_cut(a, &cut, cut.left));
    TRY(active_solve(a, s->rho));
    least[look] = batch_cut_value(&cut);
  }
  codes_spread(q, 0);
  return OK;
}

static int is_same(const struct problem *q)
{
  size_t bytes = (size_t)q->shape->n * (size_t)q->shape->k * sizeof *q->codes;
  return memcmp(q->codes, q->wanted, bytes) == 0;
}

static void shape_check(const struct shape *s, const struct how *how, int threads)
{
  struct problem q;
  float least[FIND_LOOKS + 1], wanted[FIND_LOOKS + 1];
  int status = problem_open(&q, s, how, threads);
  if (!status) status = find_batch_reference(&q.rows, s->l0, s->looks, q.wanted, q.left, wanted);
  if (!status) status = batch_run(&q, least);
  ok(status == OK, "%d rows, %d atoms: %s", s->n, s->k, status ? status_message() : "done");
  ok(!status && is_same(&q) && memcmp(least, wanted, (size_t)(s->looks + 1) * 4) == 0,
     "batch: %d rows, %d atoms, %d columns, l0 %g, rho %g, kind %d, %d threads", s->n, s->k, s->p,
     s->l0, s->rho, s->kind, threads);
  struct found_encoder by = {
      .looks = s->looks, .rho = s->rho, .relative = s->relative, .floor = 0.5};
  for (int i = 0; i <= s->looks; i++) by.threshold[i] = wanted[i];
  q.rows.toward = NULL;
  if (!status) status = active_atoms(&q.active, q.atoms, s->k, NULL);
  if (!status) status = active_encode(&q.active, &q.all, 0, s->n, &by);
  if (!status) codes_spread(&q, 0);
  if (!status) status = find_encode_reference(&q.rows, &by, q.wanted);
  ok(!status && is_same(&q), "thresholds: %d rows, %d atoms, kind %d", s->n, s->k, s->kind);
  int pieces = 0;
  memset(q.codes, 0, (size_t)s->n * (size_t)s->k * sizeof *q.codes);
  if (!status) status = pieces_encode(&q, &by, &pieces);
  ok(!status && is_same(&q) && (s->n < 100 || pieces > 1),
     "thresholds: %d rows, %d atoms, kind %d, in %d pieces", s->n, s->k, s->kind, pieces);
  problem_close(&q);
}

static void check_active(const struct how *how)
{
  static const struct shape shapes[] = {
      {1, 1, 1, 1, 0, 0, 0, 0},     {1, 40, 16, 6, 0, 1, 0, 0},   {300, 60, 20, 5, 0, 1, 0, 0},
      {300, 60, 20, 5, 1, 2, 0, 0}, {120, 30, 9, 8, 0, 2, 1, 0},  {64, 300, 40, 9, 0, 1, 2, 0},
      {64, 300, 6, 20, 1, 1, 2, 0}, {20, 8, 16, 8, 0.5, 1, 0, 0}, {2500, 20, 12, 3, 0, 1, 0, 0},
      {300, 60, 20, 5, 1, 3, 0, 1}, {120, 30, 9, 8, 0, 2, 1, 1},  {64, 300, 40, 9, 0, 1, 2, 1},
  };
  claim_begin("codes on active atoms are those of the plain loops");
  for (int i = 0; i < LENGTH(shapes); i++)
    for (int threads = 1; threads <= how->threads; threads++) shape_check(&shapes[i], how, threads);
  claim_end();
}

#endif
