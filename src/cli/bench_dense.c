/* SPDX-License-Identifier: BSD-3-Clause
 * Factor, inverse and S^-1 = Z'Z of one matrix, the peer on the same matrix in the same turn,
 * medians of the ratios. */
#include "cli/bench_dense.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "cli/bench_median.h"
#include "cli/bench_peer.h"
#include "device/dense.h"

#define AT(member) offsetof(struct bench_dense_options, member)

const struct option_row bench_dense_rows[BENCH_DENSE_ROWS] = {
    {"schur", OPTION_INT, AT(schur), "4096", 1, 1 << 16, NULL, "BORDERS",
     "rows of the matrix that is factored"},
    {"panel", OPTION_INT, AT(panel), "256", DENSE_MIN_PANEL, DENSE_MAX_PANEL, NULL, "COLUMNS",
     "columns factored at a time"},
};

enum dense_case { CASE_PEER, CASE_FACTOR, CASE_INVERSE, CASE_PRODUCT, CASES };
static const char *const case_names[CASES] = {"dpotrf", "factor", "inverse", "covariance"};
enum { MAX_REPEATS = 1000 };

struct bench {
  const struct bench_dense_options *o;
  struct device device;
  struct dense dense;
  real *s, *work, *product, *pivot;
  struct arena arena;
  int threads;
  double seconds[CASES][MAX_REPEATS];
};

/* Entries of -1/2 .. 1/2 and a diagonal that makes it positive definite. */
static void matrix_fill(struct bench *b)
{
  idx n = b->o->schur;
  for (gidx i = 0; i < (gidx)n * n; i++)
    b->s[i] = (real)random_below(1, 1, (uint64_t)i, 1 << 20) * 0x1p-20 - 0.5;
  for (gidx i = 0; i < n; i++) b->s[i + i * n] = n;
}

static void copy(struct bench *b)
{
  memcpy(b->work, b->s, (size_t)b->o->schur * (size_t)b->o->schur * sizeof *b->s);
}

static int turn_run(struct bench *b, int turn)
{
  idx n = b->o->schur, good;
  copy(b);
  b->seconds[CASE_PEER][turn] = peer_potrf(b->work, n, b->threads);
  copy(b);
  double begun = log_seconds();
  TRY(dense_cholesky(&b->dense, b->work, n, n, b->pivot, &good));
  CHECK(good == n, ERR_INTERNAL, "the matrix of the benchmark is not positive definite");
  b->seconds[CASE_FACTOR][turn] = log_seconds() - begun;
  begun = log_seconds();
  TRY(dense_inverse(&b->dense, b->work, n, n));
  b->seconds[CASE_INVERSE][turn] = log_seconds() - begun;
  struct dense_operand z = {b->work, n, 1, 0, 1};
  begun = log_seconds();
  for (idx i = 0; i < n; i += DENSE_MAX_PANEL) { /* only rows from i on have columns there */
    idx end = i + DENSE_MAX_PANEL < n ? i + DENSE_MAX_PANEL : n;
    struct dense_product p = {z, z, i, end, 0, end, i, n, b->product + i, n, PART_LOWER};
    TRY(dense_product(&b->dense, &p));
  }
  b->seconds[CASE_PRODUCT][turn] = log_seconds() - begun;
  return OK;
}

/* A line; of_peer: how many times the peer's rate, 0 where there is none; total: of our cases. */
static void line_tell(const struct bench *b, int which, double seconds, double of_peer,
                      double total, struct json *j)
{
  double n = b->o->schur;
  json_object(j, NULL);
  json_text(j, "name", case_names[which]);
  json_real(j, "seconds", seconds);
  json_real(j, "gmacs", 1e-9 * n * n * n / 6 / seconds);
  json_real(j, "of_dpotrf", of_peer > 0 ? of_peer : nan_canonical());
  json_real(j, "share", which != CASE_PEER ? seconds / total : nan_canonical());
  json_end(j);
}

static void table_tell(const struct bench *b, const double *seconds, const double *of_peer,
                       double total, struct json *j)
{
  json_long(j, "size", b->o->schur);
  json_long(j, "panel", b->o->panel);
  json_text(j, "variant", b->device.variant);
  json_array(j, "lines");
  for (int which = 0; which < CASES; which++)
    if (seconds[which] > 0)
      line_tell(b, which, seconds[which], seconds[CASE_PEER] > 0 ? of_peer[which] : 0, total, j);
  json_end(j);
}

static void table_print(struct bench *b, int repeats, struct json *json)
{
  double n = b->o->schur, work = n * n * n / 6, ratio[MAX_REPEATS], total = 0;
  double seconds[CASES], of_peer[CASES];
  for (int which = 0; which < CASES; which++) {
    for (int r = 0; r < repeats; r++) ratio[r] = b->seconds[CASE_PEER][r] / b->seconds[which][r];
    of_peer[which] = median(ratio, repeats);
    memcpy(ratio, b->seconds[which], (size_t)repeats * sizeof *ratio);
    seconds[which] = median(ratio, repeats);
    if (which != CASE_PEER) total += seconds[which];
  }
  if (json) {
    table_tell(b, seconds, of_peer, total, json);
    return;
  }
  printf("S of %d x %d, panel=%d threads=%d variant=%s, medians of %d runs\n", b->o->schur,
         b->o->schur, b->o->panel, b->threads, b->device.variant, repeats);
  printf("%-12s %10s %10s %10s %10s\n", "", "seconds", "GMAC/s", "of dpotrf", "share");
  for (int which = 0; which < CASES; which++) {
    if (seconds[which] <= 0) continue;
    printf("%-12s %10.4f %10.2f", case_names[which], seconds[which], 1e-9 * work / seconds[which]);
    if (seconds[CASE_PEER] > 0) printf(" %9.1f%%", 100 * of_peer[which]);
    if (which != CASE_PEER) printf(" %9.1f%%", 100 * seconds[which] / total);
    printf("\n");
  }
}

int bench_dense(const struct bench_dense_options *o, const struct bench_common *common)
{
  static struct bench b;
  int threads = common->threads;
  gidx values = (gidx)o->schur * o->schur;
  b = (struct bench){.o = o, .threads = threads};
  struct device_options options = {
      .p = 1, .d = 1, .threads = threads, .variant = common->cpu_variant};
  TRY(device_open(&b.device, &options));
  TRY(dense_open(&b.dense, &b.device, o->panel, o->schur));
  TRY(arena_alloc(&b.arena, &b.s, values, sizeof *b.s));
  TRY(arena_alloc(&b.arena, &b.work, values, sizeof *b.work));
  TRY(arena_alloc(&b.arena, &b.product, values, sizeof *b.product));
  TRY(arena_alloc(&b.arena, &b.pivot, o->schur, sizeof *b.pivot));
  matrix_fill(&b);
  for (int r = 0; r < common->repeats; r++) TRY(turn_run(&b, r));
  table_print(&b, common->repeats, common->json);
  dense_close(&b.dense);
  device_close(&b.device);
  arena_free(&b.arena);
  return OK;
}
