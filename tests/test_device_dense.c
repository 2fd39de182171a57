/* SPDX-License-Identifier: BSD-3-Clause
 * The blocked Cholesky factor, its inverse and products have the bits of the plain loops, for every
 * size, panel, thread count and variant; the upper triangle is not touched; a bad pivot is found
 * where the plain loops find it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "base/status.h"
#include "device/backend.h"
#include "device/dense.h"
#include "model/dense.h"
#include "tap.h"
#include "variants.h"

enum { GUARD = 7, THREADS = 2 }; /* guard: stride - n */
/* devices[v][t]: of a variant, with t + 1 threads; a variant that is absent is not tried. */
static struct device devices[LOOP_VARIANTS][THREADS];

/* One with two threads. */
static struct device *device_any(void)
{
  return devices[LOOP_VARIANTS - 1][1].kind ? &devices[LOOP_VARIANTS - 1][1] : &devices[0][1];
}

static int devices_open(void)
{
  int count = 0;
  for (int v = 0; v < LOOP_VARIANTS; v++)
    for (int t = 0; t < THREADS; t++) {
      struct device_options options = {
          .p = 1, .d = 1, .threads = t + 1, .variant = loop_variants[v]};
      int status = device_open(&devices[v][t], &options);
      if (status && t == 0) skip("%s", status_message());
      if (status) device_close(&devices[v][t]);
      status_clear();
      count += !status;
    }
  return count;
}

static void devices_close(void)
{
  for (int v = 0; v < LOOP_VARIANTS; v++)
    for (int t = 0; t < THREADS; t++) device_close(&devices[v][t]);
}

struct problem {
  idx n;
  gidx stride;
  real *s, *want, *got, *pivot, *want_pivot;
  struct arena arena;
};

/* A positive definite matrix with a condition that is not small, or one with an indefinite part. */
static void problem_fill(struct problem *q, int is_indefinite)
{
  idx n = q->n;
  for (gidx i = 0; i < q->stride * n; i++) q->s[i] = (real)i; /* what must stay */
  for (idx j = 0; j < n; j++)
    for (idx i = j; i < n; i++) {
      real near = i - j < 5 ? 0.2 / (1 + i - j) : 0;
      q->s[i + j * q->stride] = near + 0.3 / sqrt(n) * random_normal(n, 1, (uint64_t)(i * n + j));
      if (i == j) q->s[i + j * q->stride] = 1.2 + 1e-3 * random_normal(n, 2, (uint64_t)i);
    }
  if (is_indefinite && n) q->s[n / 2 + n / 2 * q->stride] = -0.25;
}

static int problem_open(struct problem *q, idx n)
{
  *q = (struct problem){.n = n, .stride = n + GUARD};
  real **arrays[] = {&q->s, &q->want, &q->got};
  for (int i = 0; i < LENGTH(arrays); i++)
    TRY(arena_alloc(&q->arena, arrays[i], q->stride * n, sizeof(real)));
  TRY(arena_alloc(&q->arena, &q->pivot, n, sizeof(real)));
  return arena_alloc(&q->arena, &q->want_pivot, n, sizeof(real));
}

static int same(const struct problem *q)
{
  return !memcmp(q->got, q->want, (size_t)(q->stride * q->n) * sizeof(real));
}

/* Factor and inverse of one way to work, against want (factor) and inverse. */
static int way_check(struct problem *q, const real *inverse, struct device *dev, idx panel,
                     idx want)
{
  struct dense d;
  size_t bytes = (size_t)(q->stride * q->n) * sizeof(real);
  idx found = -1;
  if (dense_open(&d, dev, panel, q->n)) return 0;
  memcpy(q->got, q->s, bytes);
  memset(q->pivot, 0x55, (size_t)q->n * sizeof(real));
  int status = dense_cholesky(&d, q->got, q->n, q->stride, q->pivot, &found);
  idx pivots = want < q->n ? want + 1 : want;
  int good =
      !status && found == want && !memcmp(q->pivot, q->want_pivot, (size_t)pivots * sizeof(real));
  if (want == q->n) {
    good = good && same(q);
    good = good && !dense_inverse(&d, q->got, q->n, q->stride) && !memcmp(q->got, inverse, bytes);
  }
  dense_close(&d);
  if (!good) printf("# n=%d %s panel=%d differs\n", q->n, dev->variant, panel);
  return good;
}

static int size_check(idx n, int is_indefinite, const idx *panels, int n_panels)
{
  struct problem q;
  real *inverse = NULL;
  int good = problem_open(&q, n) == OK;
  good = good && arena_alloc(&q.arena, &inverse, q.stride * n, sizeof(real)) == OK;
  problem_fill(&q, is_indefinite);
  size_t bytes = (size_t)(q.stride * n) * sizeof(real);
  memcpy(q.want, q.s, bytes);
  idx want = cholesky_reference(q.want, n, q.stride, q.want_pivot);
  good = good && (want == n) == (!is_indefinite || n == 0);
  memcpy(inverse, q.want, bytes);
  if (want == n) inverse_reference(inverse, n, q.stride);
  for (int v = 0; v < LOOP_VARIANTS; v++)
    for (int p = 0; p < n_panels; p++) {
      struct device *dev = &devices[v][(n + v + p) % 5 == 0];
      if (dev->kind) good &= way_check(&q, inverse, dev, panels[p], want);
    }
  arena_free(&q.arena);
  return good;
}

static void sizes_check(void)
{
  static const idx panels[] = {8, 24, 61, 512}, one[] = {64};
  int good = 1, indefinite = 1;
  for (idx n = 0; n <= 300; n++) {
    int many = n <= 70 || n % 37 == 0;
    good &= size_check(n, 0, many ? panels : one, many ? LENGTH(panels) : LENGTH(one));
    if (many) indefinite &= size_check(n, 1, panels, LENGTH(panels));
  }
  ok(good, "factor, pivots and inverse of n = 0 .. 300");
  ok(indefinite, "the bad pivot of indefinite ones");
}

static void large_check(idx n)
{
  static const idx panels[] = {8, 128, 512};
  struct problem q;
  int good = problem_open(&q, n) == OK;
  problem_fill(&q, 0);
  memcpy(q.want, q.s, (size_t)(q.stride * n) * sizeof(real));
  good = good && cholesky_reference(q.want, n, q.stride, q.want_pivot) == n;
  for (int v = 0; v < LOOP_VARIANTS; v++)
    for (int p = v; p < LENGTH(panels); p += 2 - v) {
      struct dense d;
      idx found = -1;
      if (!devices[v][p % 2].kind) continue;
      good = good && dense_open(&d, &devices[v][p % 2], panels[p], n) == OK;
      memcpy(q.got, q.s, (size_t)(q.stride * n) * sizeof(real));
      good = good && !dense_cholesky(&d, q.got, n, q.stride, q.pivot, &found) && found == n &&
             same(&q) && !memcmp(q.pivot, q.want_pivot, (size_t)n * sizeof(real));
      dense_close(&d);
    }
  ok(good, "factor of n = %d", n);
  arena_free(&q.arena);
}

/* The componentwise backward error |S x - b|_i / (|S| |x| + |b|)_i of Oettli and Prager, in
 * roundings: of sums of 700 terms, whose errors grow like their root. */
#define BACKWARD_ERROR (32 * 0x1p-53)

static void solve_check(idx n)
{
  struct problem q;
  struct dense d;
  idx found = -1;
  real *x = NULL, error = 0, off = 0;
  int good = problem_open(&q, n) == OK && dense_open(&d, device_any(), 64, n) == OK &&
             arena_alloc(&q.arena, &x, n, sizeof *x) == OK;
  problem_fill(&q, 0);
  memcpy(q.got, q.s, (size_t)(q.stride * n) * sizeof(real));
  good = good && !dense_cholesky(&d, q.got, n, q.stride, q.pivot, &found) && found == n;
  for (idx i = 0; i < n; i++) x[i] = random_normal(9, 1, (uint64_t)i);
  cholesky_solve(q.got, n, q.stride, x);
  for (idx i = 0; i < n; i++) {
    long double left = -random_normal(9, 1, (uint64_t)i), size = fabsl(left), moved = 0;
    for (idx j = 0; j < n; j++) {
      long double term =
          (i > j ? q.s[i + j * q.stride] : q.s[j + i * q.stride]) * (long double)x[j];
      left += term;
      size += fabsl(term);
      moved += j % 2 ? term : -term;
    }
    error = fmax(error, (real)(fabsl(left) / size));
    off = fmax(off, (real)(fabsl(left + 1e-12L * moved) / size));
  }
  ok(good && error <= BACKWARD_ERROR && off > 10 * BACKWARD_ERROR,
     "n = %d: componentwise backward error %.2g of a solve, %.2g of one off by 1e-12", n, error,
     off);
  dense_close(&d);
  arena_free(&q.arena);
}

/* C = Z' Z through the triangular operand, upper and lower part; other entries stay. */
static void product_check(idx n, enum dense_part part)
{
  struct problem q;
  struct dense d;
  int good = problem_open(&q, n) == OK && dense_open(&d, device_any(), 64, n) == OK;
  problem_fill(&q, 0);
  struct dense_operand z = {q.s, q.stride, 1, 0, 1};
  struct dense_product p = {z, z, 0, n, 0, n, 0, n, q.got, q.stride, part};
  good = good && dense_product(&d, &p) == OK;
  for (idx j = 0; j < n; j++)
    for (idx i = 0; i < n; i++) {
      int is_there = part == PART_ALL || (part == PART_LOWER ? i >= j : i < j);
      q.want[i + j * q.stride] = is_there ? inverse_entry(q.s, n, q.stride, i, j) : 0;
    }
  ok(good && same(&q), "product of triangles, n = %d, part %d", n, part);
  dense_close(&d);
  arena_free(&q.arena);
}

/* A backend without dense work says so. */
static void lack_check(void)
{
  const struct backend none = {.kind = "none"};
  struct device dev = {.backend = &none, .kind = none.kind};
  struct dense d;
  real s = 1, pivot;
  idx good;
  ok(dense_open(&d, &dev, 64, 1) == ERR_DEVICE && strstr(status_message(), "dense_open") &&
         strstr(status_message(), "'none'"),
     "dense_open on a device without it: %s", status_message());
  status_clear();
  int status = dense_cholesky(&d, &s, 1, 1, &pivot, &good);
  ok(status == ERR_DEVICE && strstr(status_message(), "cholesky"), "cholesky: %s",
     status_message());
  status_clear();
  dense_close(&d);
}

int main(void)
{
  claim_begin("a device without dense work says so");
  lack_check();
  claim_end();
  if (!devices_open()) return done_testing();
  sizes_check();
  const char *sanitized = getenv("SANITIZED"); /* the plain loops would take minutes */
  large_check(sanitized && *sanitized ? 600 : 2000);
  solve_check(700);
  claim_begin("products of triangles, whole and in part");
  product_check(301, PART_ALL);
  product_check(301, PART_LOWER);
  product_check(301, PART_UPPER);
  claim_end();
  devices_close();
  return done_testing();
}
