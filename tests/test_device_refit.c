/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: products, sums, moves and residuals of rows have the bits of the reference, for frames of
 * 1 to 8, widths that are no multiple of a vector, any number of rows and every variant. */
#include "device/refit.h"

#include <math.h>
#include <string.h>

#include "base/order.h"
#include "base/status.h"
#include "model/dictionary.h"
#include "model/step.h"
#include "tap.h"

enum { P_MOST = 133, N_MOST = 21, D_MOST = FRAME_MOST };

static real residual[N_MOST * P_MOST], vectors[D_MOST * P_MOST], moved[D_MOST * P_MOST];
static real codes[N_MOST * D_MOST], got[N_MOST * D_MOST], want[N_MOST * P_MOST], sums[P_MOST];
static real objective[N_MOST], l[D_MOST * D_MOST];
static idx rows[N_MOST];

static void fill(real *out, gidx count, uint64_t stream)
{
  for (gidx i = 0; i < count; i++) out[i] = random_normal(3, stream, (uint64_t)i);
}

static int same(const real *a, const real *b, gidx count)
{
  return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

static int products_check(struct device *dev, idx n, idx d, idx p)
{
  struct rows_item item = {rows, n, vectors, d, d, got};
  int good = device_row_products(dev, residual, p, &item, 1) == OK;
  for (idx i = 0; i < n; i++)
    for (idx v = 0; v < d; v++) {
      real x = chain_dot(residual + (gidx)rows[i] * p, vectors + (gidx)v * p, p);
      good &= same(&x, got + i * d + v, 1);
    }
  item = (struct rows_item){rows, n, NULL, 1, 1, got};
  good &= device_row_products(dev, residual, p, &item, 1) == OK;
  for (idx i = 0; i < n; i++) {
    const real *r = residual + (gidx)rows[i] * p;
    real x = chain_dot(r, r, p);
    good &= same(&x, got + i, 1);
  }
  item = (struct rows_item){rows, n, codes, 1, d, sums};
  good &= device_row_sums(dev, residual, p, &item, 1) == OK;
  for (idx c = 0; c < p; c++) {
    real x = 0;
    for (idx i = 0; i < n; i++) x = fma(residual[(gidx)rows[i] * p + c], codes[i * d], x);
    good &= same(&x, sums + c, 1);
  }
  return good;
}

static int moves_check(struct device *dev, idx n, idx d, idx p)
{
  const real rho = 0.375;
  real t[D_MOST];
  struct move_item item = {rows, n, vectors, moved, codes, got, objective};
  struct moves_job job = {d, p, rho, residual, &item, 1};
  struct row_move move = {d, p, rho, vectors, moved, l};
  int good = step_factor(moved, d, p, rho, l) && device_moves_try(dev, &job) == OK;
  for (idx i = 0; i < n; i++) {
    real *left = want + (gidx)rows[i] * p;
    real x = step_row(&move, residual + (gidx)rows[i] * p, codes + i * d, t, left);
    good &= same(&x, objective + i, 1) && same(t, got + i * d, d);
  }
  good &= device_moves_keep(dev, &job) == OK;
  for (idx i = 0; i < n; i++)
    good &= same(want + (gidx)rows[i] * p, residual + (gidx)rows[i] * p, p);
  return good;
}

static int shape_check(struct device *dev, idx n, idx d, idx p)
{
  fill(residual, (gidx)N_MOST * p, 1);
  fill(vectors, (gidx)d * p, 2);
  fill(moved, (gidx)d * p, 3);
  fill(codes, (gidx)n * d, 4);
  for (idx i = 0; i < n; i++) rows[i] = N_MOST - 1 - i;
  return products_check(dev, n, d, p) && moves_check(dev, n, d, p);
}

int main(void)
{
  const char *const variants[] = {"avx2", "avx512"};
  const idx widths[] = {9, 64, 67, 128, P_MOST}, counts[] = {0, 1, 7, 8, 9, N_MOST};
  for (int v = 0; v < LENGTH(variants); v++)
    for (idx d = 1; d <= D_MOST; d++) {
      struct device dev = {0};
      struct device_options options = {.p = 1, .d = d, .threads = 2, .variant = variants[v]};
      if (device_open(&dev, &options) == ERR_DEVICE) {
        skip("this processor lacks %s", variants[v]);
        status_clear();
        continue;
      }
      int good = 1;
      for (int i = 0; i < LENGTH(widths); i++)
        for (int j = 0; j < LENGTH(counts); j++) good &= shape_check(&dev, counts[j], d, widths[i]);
      ok(good, "%s, frames of %d", variants[v], d);
      device_close(&dev);
    }
  return done_testing();
}
