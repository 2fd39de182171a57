/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the blocked Cholesky factor, its inverse and products have the bits of the plain loops,
 * for every size, panel, thread count and variant.  The upper triangle does not change.  A bad
 * pivot is found where the plain loops find it. */
#include "device/backend.h"
#include "device_dense.h"
#include "variants.h"

enum { THREADS = 2 };
/* devices[v][t]: variant v with t + 1 threads.  Variants that the processor lacks are left out. */
static struct device devices[LOOP_VARIANTS][THREADS];

/* A device with two threads. */
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

/* Check one matrix with all variants and these panels, on one thread or two. */
static int size_check(idx n, enum dense_kind kind, const idx *panels, int n_panels)
{
  struct dense_way ways[8 * LOOP_VARIANTS];
  int count = 0;
  for (int v = 0; v < LOOP_VARIANTS; v++)
    for (int p = 0; p < n_panels; p++) {
      struct device *dev = &devices[v][(n + v + p) % 5 == 0];
      if (dev->kind) ways[count++] = (struct dense_way){dev, panels[p]};
    }
  return dense_check(n, kind, ways, count);
}

static void sizes_check(void)
{
  static const idx panels[] = {8, 24, 61, 512}, one[] = {64};
  int good = 1, bad = 1;
  for (idx n = 0; n <= 300; n += is_small() && n >= 70 ? 23 : 1) {
    int many = n <= 70 || n % 37 == 0;
    good &= size_check(n, DENSE_DEFINITE, many ? panels : one, many ? LENGTH(panels) : LENGTH(one));
    if (many) bad &= size_check(n, DENSE_INDEFINITE, panels, LENGTH(panels));
    if (many) bad &= size_check(n, DENSE_NAN, panels, LENGTH(panels));
  }
  ok(good, "factor, pivots, inverse and its entries of n = 0 .. 300");
  ok(bad, "the bad pivot of an indefinite matrix, and of one with NaN, is found");
}

/* The largest componentwise backward error |S x - b|_i / (|S| |x| + |b|)_i of Oettli and Prager, as
 * a multiple of a rounding.  Sums have 700 terms, and their errors grow like the root of this
 * number. */
#define BACKWARD_ERROR (32 * 0x1p-53)

static void solve_check(idx n)
{
  struct dense_problem q;
  struct dense d;
  idx found = -1;
  real *x = NULL, *got = NULL, *pivots = NULL, error = 0, off = 0;
  int good = dense_problem_open(&q, n, DENSE_DEFINITE) == OK &&
             dense_open(&d, device_any(), 64, n) == OK &&
             arena_alloc(&q.arena, &x, n, sizeof *x) == OK &&
             arena_alloc(&q.arena, &pivots, n, sizeof *x) == OK &&
             arena_alloc(&q.arena, &got, q.stride * n, sizeof *x) == OK;
  memcpy(got, q.s, (size_t)(q.stride * n) * sizeof(real));
  good = good && !dense_cholesky(&d, got, n, q.stride, pivots, &found) && found == n;
  for (idx i = 0; i < n; i++) x[i] = random_normal(9, 1, (uint64_t)i);
  cholesky_solve(got, n, q.stride, x);
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

/* A backend without dense operations reports this. */
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
  static const idx panels[] = {8, 128, 512};
  claim_begin("a device without dense work reports an error");
  lack_check();
  claim_end();
  if (!devices_open()) return done_testing();
  sizes_check();
  /* 1100: three panels of the largest width.  For more the plain loops are slow. */
  idx large = is_small() ? 400 : is_full() ? 1600 : 1100;
  ok(size_check(large, DENSE_DEFINITE, panels, LENGTH(panels)), "n = %d", large);
  solve_check(700);
  for (int v = 0; v < LOOP_VARIANTS; v++) {
    struct dense_way way = {&devices[v][v % 2], 64};
    if (!way.dev->kind) continue;
    ok(products_check(&way, 131) && products_check(&way, 301), "products, %s", way.dev->variant);
    ok(triangles_check(&way, 301), "products of triangles, %s", way.dev->variant);
  }
  devices_close();
  return done_testing();
}
