/* SPDX-License-Identifier: BSD-3-Clause
 * Checks of imported encoders on any device against the reference.  There are all kinds of
 * encoders, many shapes, and data that show faults: ties, thresholds that are negative or infinite,
 * rows with no entry or with all atoms, products that cancel the bias, and scores and codes that
 * are not finite. */
#ifndef TESTS_DEVICE_ENCODER_H
#define TESTS_DEVICE_ENCODER_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "device/encoder.h"
#include "device_how.h"

enum encoder_data {
  DATA_RANDOM,
  DATA_TIES,      /* few different weights and values: many scores are equal, many are 0 */
  DATA_ALL,       /* all scores are positive */
  DATA_NONE,      /* no score is positive, except in one of 50 rows, where all are */
  DATA_CANCEL,    /* some biases cancel the product in row 0, exactly or up to its last bit */
  DATA_SUBNORMAL, /* scores are subnormal */
  DATA_BAD_SCORE, /* the score of the last atom is not finite in some rows */
  DATA_BAD_CODE,  /* codes overflow by the norm, in the row before one whose scores overflow */
  DATA_KINDS
};

struct encoder_problem {
  idx n, p, k, top, tile;
  enum encoder_kind kind;
  int scaled, rescaled;
  enum encoder_data data;
  struct arena arena;
  float *rows, *weights, *bias, *threshold, *norm;
  idx *lengths, *found_lengths;
  struct entry_list wanted, found;
  struct bad_score bad;
};

static float encoder_draw(uint64_t stream, gidx i)
{
  return (float)random_normal(11, stream, (uint64_t)i);
}

static float encoder_row_value(const struct encoder_problem *c, gidx i)
{
  gidx row = i / c->p;
  float normal = encoder_draw(1, i);
  switch (c->data) {
  case DATA_TIES:
    return row % 13 == 5 ? 0 : (float)random_below(11, 2, (uint64_t)i, 3) - 1;
  case DATA_ALL:
    return fabsf(normal) + 0.01F;
  case DATA_NONE:
    return row % 50 == 7 ? fabsf(normal) : -fabsf(normal);
  case DATA_SUBNORMAL:
    return normal * 0x1p-140F;
  case DATA_BAD_SCORE:
    return row % 11 == 10 && i % c->p == 0 ? 3e38F : normal;
  case DATA_BAD_CODE: /* row 10 of 11 has scores that overflow, row 9 only codes that do */
    return row % 11 == 10 ? normal * 0x1p127F : row % 11 == 9 ? normal * 0x1p100F : normal;
  default:
    return normal;
  }
}

static float encoder_weight(const struct encoder_problem *c, gidx i)
{
  gidx atom = i / c->p;
  float normal = encoder_draw(3, i);
  switch (c->data) {
  case DATA_TIES:
    return (float)random_below(11, 4, (uint64_t)(atom % 97 * c->p + i % c->p), 3) - 1;
  case DATA_ALL:
    return fabsf(normal);
  case DATA_NONE:
    return atom == c->k / 2 ? 1 : fabsf(normal);
  case DATA_BAD_SCORE:
    return i % c->p ? normal : atom == c->k - 1 ? -2 : 0;
  default:
    return normal;
  }
}

static void encoder_vectors_fill(struct encoder_problem *c)
{
  for (idx a = 0; a < c->k; a++) {
    c->bias[a] = c->data == DATA_RANDOM ? 0.3F * encoder_draw(5, a) : 0;
    c->threshold[a] = a % 11 == 3 ? INFINITY : a % 7 == 2 ? -1 : 0.4F * encoder_draw(6, a);
    c->norm[a] = c->data == DATA_BAD_CODE ? 0x1p26F : 1.5F + (float)(a % 5) / 7;
    if (c->data == DATA_CANCEL && c->n) {
      float z = route_score(c->rows, c->weights + (gidx)a * c->p, c->p);
      c->bias[a] = a % 3 == 0 ? -z : a % 3 == 1 ? -nextafterf(z, -INFINITY) : 0.1F;
    }
  }
}

static int encoder_problem_make(struct encoder_problem *c)
{
  TRY(arena_alloc(&c->arena, &c->rows, (gidx)c->n * c->p, sizeof(float)));
  TRY(arena_alloc(&c->arena, &c->weights, (gidx)c->k * c->p, sizeof(float)));
  TRY(arena_alloc(&c->arena, &c->bias, c->k, sizeof(float)));
  TRY(arena_alloc(&c->arena, &c->threshold, c->k, sizeof(float)));
  TRY(arena_alloc(&c->arena, &c->norm, c->k, sizeof(float)));
  TRY(arena_alloc(&c->arena, &c->lengths, c->n, sizeof(idx)));
  TRY(arena_alloc(&c->arena, &c->found_lengths, c->n, sizeof(idx)));
  for (gidx i = 0; i < (gidx)c->n * c->p; i++) c->rows[i] = encoder_row_value(c, i);
  for (gidx i = 0; i < (gidx)c->k * c->p; i++) c->weights[i] = encoder_weight(c, i);
  encoder_vectors_fill(c);
  return OK;
}

static struct encoder encoder_of(const struct encoder_problem *c)
{
  int has_threshold = c->kind == ENCODER_JUMPRELU || c->kind == ENCODER_BATCHTOPK;
  return (struct encoder){.kind = c->kind,
                          .k = c->k,
                          .p = c->p,
                          .top = c->kind == ENCODER_TOPK ? (idx)imin(c->top, c->k) : c->top,
                          .rescaled = c->rescaled,
                          .weights = c->weights,
                          .bias = c->bias,
                          .threshold = has_threshold ? c->threshold : NULL,
                          .norm = c->scaled ? c->norm : NULL};
}

/* The reference's results for a row.  Returns 0 if a score or a code is not finite. */
static int encoder_answer_row(struct encoder_problem *c, const struct encoder *e, idx row,
                              float *scores, idx *support, float *codes)
{
  for (idx a = 0; a < c->k; a++) {
    scores[a] = encoder_score(e, c->rows + (gidx)row * c->p, a);
    if (isfinite(scores[a])) continue;
    c->bad = (struct bad_score){row, a};
    return 0;
  }
  idx n = c->lengths[row] = encoder_select(e, scores, support, codes);
  for (idx j = 0; j < n; j++)
    if (!isfinite(codes[j])) {
      c->bad = (struct bad_score){row, support[j]};
      return 0;
    }
  return entries_add(&c->wanted, support, scores, codes, n);
}

static void encoder_answer(struct encoder_problem *c)
{
  struct encoder e = encoder_of(c);
  float *scores = calloc((size_t)c->k + 1, 4), *codes = calloc((size_t)c->k + 1, 4);
  idx *support = calloc((size_t)c->k + 1, 4);
  c->bad = (struct bad_score){-1, -1};
  for (idx i = 0; i < c->n; i++)
    if (!encoder_answer_row(c, &e, i, scores, support, codes)) break;
  free(scores);
  free(codes);
  free(support);
}

static int encoder_equal(const struct encoder_problem *c)
{
  const struct entry_list *a = &c->wanted, *b = &c->found;
  size_t bytes = (size_t)a->n * 4;
  if (c->bad.row >= 0) return 1;
  if (a->n != b->n || memcmp(c->lengths, c->found_lengths, (size_t)c->n * sizeof(idx))) return 0;
  return !bytes || (!memcmp(a->atoms, b->atoms, bytes) && !memcmp(a->score, b->score, bytes) &&
                    !memcmp(a->codes, b->codes, bytes));
}

/* Put the matrix on the device, in tiles.  `again`: first put other tiles and free them. */
static int encoder_put(const struct encoder_problem *c, struct device *dev, int again)
{
  for (idx a = 0; again && a < c->k; a += c->tile)
    TRY(device_put_tile(dev, c->weights, (idx)imin(c->k - a, c->tile), a));
  if (again) TRY(device_dictionary_free(dev));
  for (idx a = 0; a < c->k; a += c->tile)
    TRY(device_put_tile(dev, c->weights + (gidx)a * c->p, (idx)imin(c->k - a, c->tile), a));
  return OK;
}

/* Run the encoder twice.  1 if both results are the reference's, otherwise 0. */
static int encoder_check(struct encoder_problem *c, const struct how *how, int threads)
{
  struct device dev = {0};
  struct device_options options = how_options(how, c->p, 1, c->k);
  struct encoder e = encoder_of(c);
  struct buffer rows = {0};
  struct encoder_job job = {
      .encoder = &e, .rows = &rows, .n = c->n, .lengths = c->found_lengths, .found = &c->found};
  gidx bytes = (gidx)c->n * c->p * (gidx)sizeof(float);
  int same = 1;
  e.weights = NULL;
  options.threads = threads;
  options.encoder = options.top_k = 1;
  options.route_rows = c->n;
  int status = device_open(&dev, &options);
  if (!status) status = encoder_put(c, &dev, threads > 1 || c->n % 2);
  if (!status) status = buffer_wrap(&dev, &rows, c->rows, bytes);
  if (!status) status = device_put(&dev, &rows, 0, bytes);
  for (int twice = 0; twice < 2 && !status; twice++) {
    status = device_encoder(&dev, &job);
    same &= job.bad.row == c->bad.row && job.bad.atom == c->bad.atom && encoder_equal(c);
  }
  buffer_free(&dev, &rows);
  device_close(&dev);
  if (status) printf("# %s\n", status_message());
  return !status && same;
}

static void encoder_run(struct encoder_problem c, const struct how *hows, int count)
{
  int good = encoder_problem_make(&c) == OK, ran = 0;
  encoder_answer(&c);
  for (int v = 0; v < count; v++)
    for (int threads = 1; threads <= hows[v].threads; threads++, ran++)
      if (!encoder_check(&c, &hows[v], threads)) {
        printf("# differs: %s %s, %d threads\n", hows[v].kind, hows[v].variant, threads);
        good = 0;
      }
  ok(good && ran, "n=%d p=%d k=%d %s top=%d tile=%d scaled=%d rescaled=%d data=%d: %lld, bad %d",
     c.n, c.p, c.k, encoder_names[c.kind], c.top, c.tile, c.scaled, c.rescaled, c.data,
     (long long)c.wanted.n, c.bad.row);
  entries_free(&c.wanted);
  entries_free(&c.found);
  arena_free(&c.arena);
}

/* Entries of the atoms below `cut`, merged with the entries of the other atoms, are the entries of
 * all atoms. */
__attribute__((unused)) static void check_encoder_merge(enum encoder_kind kind, idx top, idx cut)
{
  struct encoder_problem c = {
      .n = 60, .p = 5, .k = 90, .top = top, .tile = 1, .kind = kind, .data = DATA_TIES};
  struct entry_list parts[2] = {{0}};
  idx lengths[2][60], support[90];
  float scores[90], codes[90];
  int good = encoder_problem_make(&c) == OK;
  struct encoder e = encoder_of(&c);
  encoder_answer(&c);
  for (int part = 0; part < 2; part++)
    for (idx i = 0; i < c.n; i++) {
      for (idx a = 0; a < c.k; a++)
        scores[a] = (a < cut) == (part == 0) ? encoder_score(&e, c.rows + i * c.p, a) : 0;
      lengths[part][i] = encoder_select(&e, scores, support, codes);
      good &= entries_add(&parts[part], support, scores, codes, lengths[part][i]);
    }
  good &= entries_merge(&parts[0], lengths[0], &parts[1], lengths[1], c.n,
                        kind == ENCODER_TOPK ? top : 0);
  entries_free(&parts[1]);
  c.found = parts[0];
  memcpy(c.found_lengths, lengths[0], sizeof lengths[0]);
  ok(good && c.wanted.n > 0 && encoder_equal(&c), "%s of %d, cut at %d: %lld entries",
     encoder_names[kind], top, cut, (long long)c.wanted.n);
  entries_free(&c.wanted);
  entries_free(&c.found);
  arena_free(&c.arena);
}

static void check_encoder_shapes(const struct how *hows, int count)
{
  static const idx ns[] = {0, 1, 7, 128, 129, 150}, ps[] = {1, 3, 17, 64, 100};
  static const idx ks[] = {1, 2, 31, 127, 128, 257, 1000}, tops[] = {1, 3, 64, 256, 1000};
  for (int i = 0; i < LENGTH(ns); i++)
    for (int j = 0; j < LENGTH(ks); j++) {
      int u = i * LENGTH(ks) + j;
      encoder_run((struct encoder_problem){.n = ns[i],
                                           .p = ps[u % LENGTH(ps)],
                                           .k = ks[j],
                                           .top = tops[u * 3 % LENGTH(tops)],
                                           .tile = 1 + u * 7 % 90,
                                           .kind = (enum encoder_kind)(u % ENCODER_KINDS),
                                           .scaled = u % 3 > 0,
                                           .rescaled = u % 3 > 1,
                                           .data = (enum encoder_data)(u % DATA_BAD_SCORE)},
                  hows, count);
    }
}

/* Every kind of encoder with every kind of data. */
static void check_encoder_data(const struct how *hows, int count)
{
  static const idx tops[] = {1, 16, 256, 1100};
  for (int data = 0; data < DATA_KINDS; data++)
    for (int u = 0; u < 7; u++)
      encoder_run((struct encoder_problem){.n = 43,
                                           .p = 48,
                                           .k = 1100,
                                           .top = tops[u % 4],
                                           .tile = 500,
                                           .kind = u < 4 ? ENCODER_TOPK
                                                         : (enum encoder_kind)(u - 4 + u / 5),
                                           .scaled = u % 2 || data == DATA_BAD_CODE,
                                           .rescaled = u == 3,
                                           .data = (enum encoder_data)data},
                  hows, count);
}

#endif
