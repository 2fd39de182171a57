/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: dense products and gradients, their sparse forms and Adam have the bits of the reference,
 * for every shape, number of rows, variant and thread count.  The reference is near to f64. */
#include "device_triad.h"
#include "variants.h"

/* The reference against f64.  The bound is the first-order error of the roundings of each sum. */
static void check_oracle(void)
{
  enum { M = 2100, K = 33, N = 17 };
  struct triad_case c;
  int good = 1;
  triad_case_make(&c, (struct triad_shape){M, K, N}, VALUES_NORMAL);
  struct triad_product p = triad_forward_of(&c, c.bias, c.wanted);
  triad_product(&p);
  for (idx r = 0; r < M; r++)
    for (idx j = 0; j < N; j++) {
      real sum = c.bias[j], size = fabs(sum);
      for (idx i = 0; i < K; i++) {
        real term = (real)c.x[r * K + i] * c.w[i * N + j];
        sum += term;
        size += fabs(term);
      }
      good &= fabs(sum - c.wanted[r * N + j]) <= (K + 1) * 0x1p-24 * size;
    }
  ok(good, "forward and f64");
  struct triad_gradient g = triad_gradient_of(&c, c.wanted);
  triad_gradient(&g);
  good = 1;
  for (idx i = 0; i < K; i++)
    for (idx j = 0; j < N; j++) {
      real sum = c.start[i * N + j], size = fabs(sum);
      for (idx r = 0; r < M; r++) {
        real term = (real)c.x[r * K + i] * c.dy[r * N + j];
        sum += term;
        size += fabs(term);
      }
      good &= fabs(sum - c.wanted[i * N + j]) <= (TRIAD_CHUNK + 4) * 0x1p-24 * size;
    }
  ok(good, "the gradient and f64");
  arena_free(&c.arena);
}

int main(void)
{
  check_oracle();
  for (int v = 0; v < LOOP_VARIANTS; v++) {
    struct how how = {.kind = "cpu", .variant = loop_variants[v], .threads = 3};
    if (how_present(&how)) check_triad(&how);
  }
  return done_testing();
}
