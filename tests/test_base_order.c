/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the streaming sums of base/sums.h are the tree of (N.0).  Widening of 16-bit floats is
 * exact for all 65,536 patterns.  Random numbers have the moments of their distributions.  The
 * fingerprints of parts add up to that of the whole. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/half.h"
#include "base/rng.h"
#include "base/sums.h"
#include "tap.h"

/* (N.0) by its definition: T(l, j) over blocks [j 2^l, (j + 1) 2^l); absent parts are left out. */
static real tree_reference(const real *x, gidx n, gidx block, int level, gidx j)
{
  if (level == 0) {
    real sum = 0;
    for (gidx i = j * block; i < n && i < (j + 1) * block; i++) sum += x[i];
    return sum;
  }
  gidx half = block << (level - 1);
  if ((2 * j + 1) * half >= n) return tree_reference(x, n, block, level - 1, 2 * j);
  return tree_reference(x, n, block, level - 1, 2 * j) +
         tree_reference(x, n, block, level - 1, 2 * j + 1);
}

static int sum_matches(const real *x, gidx n)
{
  struct row_sum s = {0};
  for (gidx i = 0; i < n; i++) row_sum_add(&s, x[i]);
  int level = 0;
  while (((gidx)ROW_BLOCK << level) < n) level++;
  real want = tree_reference(x, n, ROW_BLOCK, level, 0), got = row_sum_total(&s);
  return memcmp(&want, &got, sizeof want) == 0;
}

/* Does block_sum_push() give the sum of row_sum_add(), with two columns at once: x and -x? */
static int blocks_match(const real *x, gidx n)
{
  real tree[TREE_LEVELS * 2] = {0}, total[2];
  gidx blocks = 0;
  struct row_sum s = {0};
  for (gidx first = 0; first < n; first += ROW_BLOCK) {
    real chain[2] = {0, 0};
    for (gidx i = first; i < n && i < first + ROW_BLOCK; i++) {
      chain[0] += x[i];
      chain[1] -= x[i];
    }
    block_sum_push(tree, &blocks, 2, chain);
  }
  for (gidx i = 0; i < n; i++) row_sum_add(&s, x[i]);
  block_sum_total(tree, blocks, 2, total);
  return total[0] == row_sum_total(&s) && total[1] == -total[0];
}

static void test_sums(void)
{
  gidx max = 9 * ROW_BLOCK + 17;
  real *x = malloc((size_t)max * sizeof *x), plain = 0;
  for (gidx i = 0; i < max; i++) {
    x[i] = random_normal(5, 0, (uint64_t)i) * (i % 7 ? 0.1 : 1e8);
    plain += x[i];
  }
  const gidx sizes[] = {0, 1, 4095, 4096, 4097, 8192, 3 * 4096, 5 * 4096 - 1, 7 * 4096 + 3, max};
  claim_begin("row_sum and block_sum are the tree sums of (N.0)");
  for (int i = 0; i < (int)(sizeof sizes / sizeof sizes[0]); i++) {
    ok(sum_matches(x, sizes[i]), "row_sum of %lld rows", (long long)sizes[i]);
    ok(blocks_match(x, sizes[i]), "block_sum of %lld rows", (long long)sizes[i]);
  }
  claim_end();
  struct row_sum s = {0};
  for (gidx i = 0; i < max; i++) row_sum_add(&s, x[i]);
  ok(plain != row_sum_total(&s), "a plain loop over the same data has another sum");
  free(x);
}

static float half_reference(unsigned bits)
{
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31) return fraction ? NAN : (float)(sign * INFINITY);
  return (float)(sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24)));
}

static void test_half(void)
{
  static uint16_t bits[65536];
  static float wide[65536], brain[65536];
  int wrong = 0, wrong_brain = 0;
  for (int i = 0; i < 65536; i++) bits[i] = (uint16_t)i;
  f16_to_f32(bits, 65536, wide);
  bf16_to_f32(bits, 65536, brain);
  for (unsigned i = 0; i < 65536; i++) {
    float want = half_reference(i);
    uint32_t top;
    memcpy(&top, &brain[i], 4);
    wrong += isnan(want) ? !isnan(wide[i]) : memcmp(&want, &wide[i], 4) != 0;
    wrong_brain += top != i << 16;
  }
  ok(wrong == 0, "binary16 widens exactly (%d wrong)", wrong);
  ok(wrong_brain == 0, "bfloat16 widens exactly (%d wrong)", wrong_brain);
}

static void test_random(void)
{
  double sum = 0, squares = 0, fourth = 0;
  const int n = 400000;
  int counts[7] = {0}, max = 0;
  for (int i = 0; i < n; i++) {
    double x = random_normal(1, 2, (uint64_t)i);
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    counts[random_below(1, 3, (uint64_t)i, 7)]++;
  }
  ok(fabs(sum / n) < 0.01, "normal numbers have mean %.4f", sum / n);
  ok(fabs(squares / n - 1) < 0.01, "normal numbers have variance %.4f", squares / n);
  ok(fabs(fourth / n - 2.9) < 0.05,
     "normal numbers have fourth moment %.3f (expected of 12 uniforms: 2.9)", fourth / n);
  for (int i = 0; i < 7; i++) max = abs(counts[i] - n / 7) > max ? abs(counts[i] - n / 7) : max;
  ok(max < 1200, "counts of seven equal numbers differ by at most %d of %d", max, n / 7);
  ok(random_bits(1, 2, 3) != random_bits(1, 3, 2) && random_bits(1, 2, 3) != random_bits(2, 2, 3),
     "another seed, stream or counter gives other bits");
}

static void test_fingerprint(void)
{
  float x[1000];
  for (int i = 0; i < 1000; i++) x[i] = (float)random_normal(1, 1, (uint64_t)i);
  uint64_t whole = fingerprint(x, 1000, 4, 50);
  ok(whole == fingerprint(x, 333, 4, 50) + fingerprint(x + 333, 667, 4, 383),
     "fingerprints of parts add up to that of the whole");
  float swap = x[3];
  x[3] = x[4];
  x[4] = swap;
  ok(whole != fingerprint(x, 1000, 4, 50), "the order of values changes the fingerprint");
  whole = fingerprint(x, 250, 16, 7);
  ok(whole == fingerprint(x, 83, 16, 7) + fingerprint(x + 332, 167, 16, 90),
     "fingerprints of parts of every fourth value add up");
  int same = 0;
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 8; j++) {
      x[i] = -x[i]; /* one sign if i = j, otherwise two */
      if (i != j) x[j] = -x[j];
      same += (fingerprint(x, 250, 16, 7) == whole);
      x[i] = -x[i];
      if (i != j) x[j] = -x[j];
    }
  ok(same == 0, "a change of one or two signs changes the fingerprint: %d of 64 do not", same);
}

int main(void)
{
  test_sums();
  test_half();
  test_random();
  test_fingerprint();
  return done_testing();
}
