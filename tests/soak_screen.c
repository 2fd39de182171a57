/* SPDX-License-Identifier: BSD-3-Clause
 * Routes again and again with and without the certified filter, and compares the supports:
 * `soak_screen SCORES [cuda [SEED]]` ends after SCORES scores.  Each problem has its own shape,
 * distribution and seed.  Not a part of `make check`: 10^12 scores take an hour of one core.  For a
 * GPU run several at a time, with seeds far apart, because making the data takes longer than
 * routing it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/status.h"
#include "device/route.h"
#include "model/dictionary.h"

enum { MAX_ATOMS = 65536, MAX_COLUMNS = 96, MAX_TOP_K = 64, BARRED = 3 };

struct soak {
  const char *kind;
  idx max_n, n; /* the most rows of a problem; rows of the present problem */
  struct arena arena;
  float *rows, *atoms;
  struct entry *lists[2];
  idx *barred; /* [n][BARRED] */
  struct exclusions excluded;
  struct screen_counts counts;
  double scores;
};

/* A number of a vector: normal, with heavy tails, a small integer, or nearly the same for all
 * vectors. */
static float draw(uint64_t seed, uint64_t stream, uint64_t i, uint64_t column)
{
  float normal = (float)random_normal(seed, stream, i);
  switch (seed % 4) {
  case 0:
    return normal;
  case 1:
    return normal *
           (float)pow(0x1p-30 * (real)(1 + random_below(seed, stream + 9, i, 1 << 30)), -0.6);
  case 2:
    return (float)random_below(seed, stream, i, 7) - 3;
  default:
    return (float)random_normal(seed, 99, column) + normal * 0x1p-3f;
  }
}

static int one_route(struct soak *s, const struct device_options *options, idx top_k, int which)
{
  struct device dev = {0};
  struct buffer rows = {0}, lists = {0};
  struct route_job job = {
      .rows = &rows, .n = s->n, .top_k = top_k, .excluded = s->excluded, .lists = &lists};
  TRY(device_open(&dev, options));
  idx half = options->max_atoms / 2, rest = options->max_atoms - half;
  gidx size = (gidx)options->d * options->p;
  TRY(device_put_tile(&dev, s->atoms + half * size, rest, half));
  TRY(device_put_tile(&dev, s->atoms, half, 0));
  TRY(buffer_wrap(&dev, &rows, s->rows, (gidx)s->n * options->p * (gidx)sizeof(float)));
  TRY(buffer_wrap(&dev, &lists, s->lists[which], (gidx)s->n * top_k * (gidx)sizeof(struct entry)));
  TRY(device_put(&dev, &rows, 0, rows.bytes));
  TRY(device_route(&dev, &job));
  TRY(device_get(&dev, &lists, 0, lists.bytes));
  buffer_free(&dev, &rows);
  buffer_free(&dev, &lists);
  for (int i = 0; i < SCREEN_PATHS; i++) s->counts.rows[i] += dev.filter.rows[i];
  device_close(&dev);
  return OK;
}

static int one_problem(struct soak *s, uint64_t seed)
{
  static const struct device_test mma = {.mma = 1};
  idx wide = random_below(seed, 8, 0, 8) ? 1 : 8; /* 8: more columns, fewer rows and atoms */
  idx p = 1 + (idx)random_below(seed, 1, 0, (uint64_t)wide * MAX_COLUMNS);
  idx d = random_below(seed, 2, 0, 4) ? 1 : 1 + (idx)random_below(seed, 3, 0, 8);
  idx k = MAX_ATOMS / d / wide - (idx)random_below(seed, 4, 0, 512);
  s->n = s->max_n / wide;
  idx top_k = 1 + (idx)random_below(seed, 5, 0, MAX_TOP_K);
  struct device_options options = {
      .p = p, .d = d, .max_atoms = k, .threads = 1, .variant = "auto", .filter = "off"};
  options.nonnegative = d == 1 && random_below(seed, 9, 0, 3) == 0;
  options.kind = s->kind;
  options.route_rows = s->n;
  for (gidx i = 0; i < (gidx)s->n * p; i++)
    s->rows[i] = draw(seed, 6, (uint64_t)i, (uint64_t)(i % p));
  for (gidx i = 0; i < (gidx)k * d * p; i++)
    s->atoms[i] = draw(seed, 7, (uint64_t)i, (uint64_t)(i % p));
  if (seed / 4 % 2) atoms_normalize(s->atoms, k, d, p);
  TRY(one_route(s, &options, top_k, 0));
  if (top_k >= BARRED && seed % 5 == 0) { /* exclude the first atoms of each row */
    for (gidx i = 0; i < (gidx)s->n * BARRED; i++)
      s->barred[i] = s->lists[0][i / BARRED * top_k + i % BARRED].atom;
    s->excluded = (struct exclusions){s->barred, BARRED, BARRED};
    TRY(one_route(s, &options, top_k, 0));
  }
  options.filter = "on";
  if (seed % 3 == 0) options.test = &mma;
  TRY(one_route(s, &options, top_k, 1));
  s->excluded = (struct exclusions){0};
  s->scores += (double)s->n * k * d;
  CHECK(!memcmp(s->lists[0], s->lists[1], (size_t)s->n * (size_t)top_k * sizeof *s->lists[0]),
        ERR_INTERNAL, "seed %llu differs: P=%d d=%d K=%d s=%d", (unsigned long long)seed, p, d, k,
        top_k);
  return OK;
}

static int soak_run(struct soak *s, double wanted, uint64_t first)
{
  TRY(arena_alloc(&s->arena, &s->rows, (gidx)s->max_n * MAX_COLUMNS, sizeof *s->rows));
  TRY(arena_alloc(&s->arena, &s->atoms, (gidx)MAX_ATOMS * MAX_COLUMNS, sizeof *s->atoms));
  TRY(arena_alloc(&s->arena, &s->barred, (gidx)s->max_n * BARRED, sizeof *s->barred));
  for (int i = 0; i < 2; i++)
    TRY(arena_alloc(&s->arena, &s->lists[i], (gidx)s->max_n * MAX_TOP_K, sizeof *s->lists[i]));
  for (uint64_t seed = first; s->scores < wanted; seed++) TRY(one_problem(s, seed));
  return OK;
}

int main(int argc, char **argv)
{
  static struct soak s;
  s.kind = argc > 2 ? argv[2] : "cpu";
  s.max_n = strcmp(s.kind, "cpu") ? 65536 : 1536; /* a GPU needs large problems */
  double wanted = argc > 1 ? atof(argv[1]) : 1e9, begun = log_seconds();
  int status = soak_run(&s, wanted, argc > 3 ? (uint64_t)atoll(argv[3]) : 1);
  printf("%.4g scores compared in %.0f s, rows certified %lld, left by their list %lld, by their "
         "scores %lld, estimate %lld, small %lld: %s\n",
         s.scores, log_seconds() - begun, (long long)s.counts.rows[0], (long long)s.counts.rows[1],
         (long long)s.counts.rows[2], (long long)s.counts.rows[3], (long long)s.counts.rows[4],
         status ? status_message() : "no mismatch");
  return status != OK;
}
