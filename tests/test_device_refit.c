/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: products, sums, moves and residuals of rows, directions, and frames at the end of a sweep
 * have the bits of the reference, for frames of 1 to 8 vectors, widths that are no multiple of a
 * vector of the processor, any number of rows, frames without a finite norm, and every variant. */
#include "device/backend.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/status.h"
#include "base/sums.h"
#include "model/dictionary.h"
#include "model/directions.h"
#include "model/relax.h"
#include "model/step.h"
#include "tap.h"
#include "variants.h"

enum { MAX_P = 133, MAX_N = 21, MAX_D = MAX_FRAME };

static real residual[MAX_N * MAX_P], vectors[MAX_D * MAX_P], moved[MAX_D * MAX_P];
static real codes[MAX_N * MAX_D], got[MAX_N * MAX_D], want[MAX_N * MAX_P], sums[MAX_P];
static real objective[MAX_N], l[MAX_D * MAX_D];
static idx rows[MAX_N];

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
      real x = lane_product(residual + (gidx)rows[i] * p, vectors + (gidx)v * p, p);
      good &= same(&x, got + i * d + v, 1);
    }
  item = (struct rows_item){rows, n, NULL, 1, 1, got};
  good &= device_row_products(dev, residual, p, &item, 1) == OK;
  for (idx i = 0; i < n; i++) {
    const real *r = residual + (gidx)rows[i] * p;
    real x = lane_product(r, r, p);
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

static int moves_check(struct device *dev, idx n, idx d, idx p, int nonnegative)
{
  const real rho = 0.375;
  real t[MAX_D];
  struct move_item item = {rows, n, vectors, moved, codes, got, objective};
  struct moves_job job = {d, p, rho, nonnegative, residual, &item, 1};
  struct row_move move = {d, p, rho, nonnegative, vectors, moved, l};
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

/* The third of four candidates is a vector of the frame, so that nothing is left of it. */
static int directions_check(struct device *dev, idx d, idx p)
{
  enum { CANDIDATES = 4 };
  real frame[MAX_D * MAX_P], candidates[CANDIDATES * MAX_P], kept[CANDIDATES * MAX_P];
  idx count = 0, wanted = 0;
  fill(frame, (gidx)d * p, 5);
  fill(candidates, (gidx)CANDIDATES * p, 6);
  int good = frame_orthonormalize(frame, d, p) == d;
  memcpy(candidates + 2 * (gidx)p, frame, (size_t)p * sizeof *frame);
  struct keep_item item = {frame, candidates, CANDIDATES, CANDIDATES, kept, &count};
  good &= device_directions_keep(dev, d, p, &item, 1) == OK;
  for (int i = 0; i < CANDIDATES; i++)
    wanted += direction_keep(
        frame, d, want, wanted, p,
        memcpy(want + (gidx)wanted * p, candidates + (gidx)i * p, (size_t)p * sizeof *want));
  return good && count == wanted && wanted == (p >= d + 3 ? 3 : p - d) &&
         same(kept, want, (gidx)count * p);
}

static int shape_check(struct device *dev, idx n, idx d, idx p)
{
  fill(residual, (gidx)MAX_N * p, 1);
  fill(vectors, (gidx)d * p, 2);
  fill(moved, (gidx)d * p, 3);
  fill(codes, (gidx)n * d, 4);
  for (idx i = 0; i < n; i++) rows[i] = MAX_N - 1 - i;
  return products_check(dev, n, d, p) && moves_check(dev, n, d, p, 0) &&
         (d > 1 || moves_check(dev, n, d, p, 1)) && directions_check(dev, d, p);
}

/* A backend without the operations of a refit reports this. */
static void lack_check(void)
{
  const struct backend none = {.kind = "none"};
  struct device dev = {.backend = &none, .kind = none.kind};
  const struct moves_job moves = {0};
  const struct {
    const char *name;
    int status;
  } calls[] = {
      {"residuals", device_residuals(&dev, &(struct residual_job){0})},
      {"row_products", device_row_products(&dev, residual, 1, NULL, 0)},
      {"row_sums", device_row_sums(&dev, residual, 1, NULL, 0)},
      {"moves_try", device_moves_try(&dev, &moves)},
      {"moves_keep", device_moves_keep(&dev, &moves)},
      {"directions_keep", device_directions_keep(&dev, 1, 1, NULL, 0)},
  };
  for (int i = 0; i < LENGTH(calls); i++)
    ok(calls[i].status == ERR_DEVICE, "%s on a device without it is ERR_DEVICE", calls[i].name);
  status_clear();
  ok(device_row_sums(&dev, residual, 1, NULL, 0) && strstr(status_message(), "row_sums") &&
         strstr(status_message(), "'none'"),
     "its message: %s", status_message());
  status_clear();
}

/* Frames that have moved a little, that are zero or NaN, or whose norm overflows. */
static int frame_end_check(struct device *dev, idx d, idx p)
{
  enum { KINDS = 4 };
  static const real factors[KINDS] = {1, 0, NAN, 1e200}, furthers[] = {0, 0.5, 0.3};
  static float tables[2][MAX_D * MAX_P];
  int good = 1;
  for (int kind = 0; kind < KINDS; kind++)
    for (int i = 0; i < LENGTH(furthers); i++) {
      gidx values = (gidx)d * p;
      fill(vectors, values, 11);
      for (gidx j = 0; j < values; j++) {
        tables[0][j] = tables[1][j] =
            kind == 1 ? 0 : (float)(vectors[j] * (1 + 0.01 * (real)(j % 7)));
        vectors[j] = moved[j] = factors[kind] * vectors[j];
      }
      const struct frame_end end = {d, p, furthers[i], moved, tables[0]};
      frame_relax(vectors, tables[1], d, p, furthers[i]);
      real want_move = frame_round(vectors, tables[1], d, p), move = device_frame_end(dev, &end);
      good &= same(&want_move, &move, 1) && same(vectors, moved, values);
      good &= memcmp(tables[0], tables[1], (size_t)values * sizeof **tables) == 0;
    }
  return good;
}

int main(void)
{
  claim_begin("a device without the operations of a refit reports an error");
  lack_check();
  claim_end();
  const idx widths[] = {9, 64, 67, 128, MAX_P}, counts[] = {0, 1, 7, 8, 9, MAX_N};
  for (int v = 0; v < LOOP_VARIANTS; v++) {
    claim_begin("%s: products, sums, moves and residuals have the reference's bits",
                loop_variants[v]);
    for (idx d = 1; d <= MAX_D; d++) {
      struct device dev = {0};
      struct device_options options = {.p = 1, .d = d, .threads = 2, .variant = loop_variants[v]};
      if (device_open(&dev, &options) == ERR_DEVICE) {
        skip("this processor lacks %s", loop_variants[v]);
        status_clear();
        continue;
      }
      int good = 1;
      for (int i = 0; i < LENGTH(widths); i++)
        for (int j = 0; j < LENGTH(counts); j++) good &= shape_check(&dev, counts[j], d, widths[i]);
      for (int i = 0; i < LENGTH(widths); i++) good &= frame_end_check(&dev, d, widths[i]);
      ok(good, "frames of %d", d);
      device_close(&dev);
    }
    claim_end();
  }
  return done_testing();
}
