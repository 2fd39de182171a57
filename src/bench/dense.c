/* SPDX-License-Identifier: BSD-3-Clause
 * Times the Cholesky factor of a matrix S, the inverse Z of the factor, and S^-1 = Z'Z.  On a CPU
 * each repeat also times dpotrf of OpenBLAS on the same matrix.  Prints medians of times, and
 * medians of the ratios to dpotrf. */
#include "bench/dense.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "bench/peer.h"
#include "device/dense.h"

#define AT(member) offsetof(struct bench_dense_options, member)

const struct option_row bench_dense_rows[BENCH_DENSE_ROWS] = {
    {"schur", OPTION_INT, AT(schur), "4096", 1, 1 << 16, NULL, "BORDERS",
     "number of rows of the matrix that is factored", .effect = OPTION_BITS},
    {"panel", OPTION_INT, AT(panel), "256", DENSE_MIN_PANEL, DENSE_MAX_PANEL, NULL, "COLUMNS",
     "number of columns that a CPU factors at a time", .effect = OPTION_RUN},
};

enum dense_case { CASE_PEER, CASE_FACTOR, CASE_INVERSE, CASE_PRODUCT, CASES };
static const char *const case_names[CASES] = {"dpotrf", "factor", "inverse", "covariance"};
enum { MAX_REPEATS = 1000 };

struct bench {
  const struct bench_dense_options *o;
  const struct bench_common *common;
  struct device device;
  struct dense dense;
  struct buffer s, work, product;
  real *pivot;
  struct arena arena;
  double seconds[CASES][MAX_REPEATS];
};

/* Fill the lower triangle with entries in -1/2 .. 1/2 and a large diagonal, so that S is positive
 * definite. */
static int matrix_fill(struct bench *b)
{
  idx n = b->o->schur;
  real *s = b->s.host;
  for (gidx j = 0; j < n; j++)
    for (gidx i = j; i < n; i++)
      s[i + j * n] = (real)random_below(1, 1, (uint64_t)(i + j * n), 1 << 20) * 0x1p-20 - 0.5;
  for (gidx i = 0; i < n; i++) s[i + i * n] = n;
  return device_put(&b->device, &b->s, 0, b->s.bytes);
}

static int copy(struct bench *b)
{
  gidx n = b->o->schur;
  struct gather_job job = {.from = &b->s, .n = n, .unit = n * (gidx)sizeof(real), .to = &b->work};
  return device_gather(&b->device, &job);
}

static int repeat_run(struct bench *b, int turn)
{
  idx n = b->o->schur, good;
  int is_cpu = strcmp(b->device.kind, "cpu") == 0;
  if (is_cpu) TRY(copy(b));
  b->seconds[CASE_PEER][turn] = is_cpu ? peer_potrf(b->work.host, n, b->common->threads) : 0;
  TRY(copy(b));
  double begun = log_seconds();
  TRY(dense_cholesky(&b->dense, b->work.device, n, n, b->pivot, &good));
  CHECK(good == n, ERR_INTERNAL, "the matrix of the benchmark is not positive definite");
  b->seconds[CASE_FACTOR][turn] = log_seconds() - begun;
  begun = log_seconds();
  TRY(dense_inverse(&b->dense, b->work.device, n, n));
  b->seconds[CASE_INVERSE][turn] = log_seconds() - begun;
  struct dense_operand z = {b->work.device, n, 1, 0, 1};
  struct dense_product p = {z, z, 0, n, 0, n, 0, n, b->product.device, n, PART_LOWER};
  begun = log_seconds();
  TRY(dense_product(&b->dense, &p));
  b->seconds[CASE_PRODUCT][turn] = log_seconds() - begun;
  return OK;
}

/* Write a line.  of_peer: our rate divided by the rate of dpotrf; 0: dpotrf was not timed.  total:
 * seconds of factor, inverse and product together. */
static void line_write(const struct bench *b, int which, double seconds, double of_peer,
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

static void table_write(const struct bench *b, const double *seconds, const double *of_peer,
                        double total, struct json *j)
{
  json_long(j, "size", b->o->schur);
  json_long(j, "panel", b->o->panel);
  json_text(j, "variant", b->device.variant);
  json_array(j, "lines");
  for (int which = 0; which < CASES; which++)
    if (seconds[which] > 0)
      line_write(b, which, seconds[which], seconds[CASE_PEER] > 0 ? of_peer[which] : 0, total, j);
  json_end(j);
}

static void table_print(struct bench *b)
{
  double n = b->o->schur, work = n * n * n / 6, ratio[MAX_REPEATS], total = 0;
  double seconds[CASES], of_peer[CASES];
  int repeats = b->common->repeats;
  for (int which = 0; which < CASES; which++) {
    for (int r = 0; r < repeats; r++) ratio[r] = b->seconds[CASE_PEER][r] / b->seconds[which][r];
    of_peer[which] = median(ratio, repeats);
    memcpy(ratio, b->seconds[which], (size_t)repeats * sizeof *ratio);
    seconds[which] = median(ratio, repeats);
    if (which != CASE_PEER) total += seconds[which];
  }
  if (b->common->json) {
    table_write(b, seconds, of_peer, total, b->common->json);
    return;
  }
  printf("S of %d x %d, panel=%d threads=%d variant=%s, medians of %d runs\n", b->o->schur,
         b->o->schur, b->o->panel, b->common->threads, b->device.variant, repeats);
  printf("%-12s %10s %10s %10s %10s %10s\n", "", "ms", "GMAC/s", "TFLOP/s", "of dpotrf", "share");
  for (int which = 0; which < CASES; which++) {
    double rate = work / seconds[which];
    if (seconds[which] <= 0) continue;
    printf("%-12s %10.2f %10.2f %10.3f", case_names[which], 1e3 * seconds[which], 1e-9 * rate,
           2e-12 * rate);
    if (seconds[CASE_PEER] > 0)
      printf(" %9.1f%%", 100 * of_peer[which]);
    else
      printf(" %10s", "");
    if (which != CASE_PEER) printf(" %9.1f%%", 100 * seconds[which] / total);
    printf("\n");
  }
}

static int bench_open(struct bench *b)
{
  gidx bytes = (gidx)b->o->schur * b->o->schur * (gidx)sizeof(real);
  struct device_options options = bench_device(b->common, 1, 0);
  TRY(device_open(&b->device, &options));
  TRY(dense_open(&b->dense, &b->device, b->o->panel, b->o->schur));
  TRY(buffer_alloc(&b->device, &b->s, bytes));
  TRY(buffer_alloc_device(&b->device, &b->work, bytes));
  TRY(buffer_alloc_device(&b->device, &b->product, bytes));
  TRY(arena_alloc(&b->arena, &b->pivot, b->o->schur, sizeof *b->pivot));
  return matrix_fill(b);
}

int bench_dense(const struct bench_dense_options *o, const struct bench_common *common)
{
  static struct bench b;
  b = (struct bench){.o = o, .common = common};
  TRY(bench_open(&b));
  if (strcmp(b.device.kind, "cpu") != 0) TRY(repeat_run(&b, 0)); /* may compile kernels */
  for (int r = 0; r < common->repeats; r++) TRY(repeat_run(&b, r));
  table_print(&b);
  struct buffer *const all[] = {&b.s, &b.work, &b.product};
  for (int i = 0; i < LENGTH(all); i++) buffer_free(&b.device, all[i]);
  dense_close(&b.dense);
  device_close(&b.device);
  arena_free(&b.arena);
  return OK;
}
