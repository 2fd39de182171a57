/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: codes, residuals and quality on the CPU have the bits of their references, for every
 * variant and thread count. */
#include "device_codes.h"
#include "variants.h"

#include "base/rng.h"

/* The quality of given codes.  Rows have 0 to 90 codes, and some codes are 0. */
static void check_quality(const struct how *how)
{
  enum { N = 100, K = 120, P = 43 };
  static float rows[N * P], atoms[K * P], codes[N * K];
  static idx support[N * K];
  gidx start[N + 1] = {0};
  for (int i = 0; i < N * P; i++) rows[i] = (float)random_normal(3, 1, (uint64_t)i);
  for (int i = 0; i < K * P; i++) atoms[i] = (float)random_normal(3, 2, (uint64_t)i);
  for (int i = 0; i < N; i++) {
    start[i + 1] = start[i] + i * 7 % 91;
    for (gidx j = start[i]; j < start[i + 1]; j++) {
      support[j] = (idx)((j * 11 + i) % K);
      codes[j] = j % 5 ? (float)random_normal(3, 3, (uint64_t)j) : 0;
    }
  }
  for (int threads = 1; threads <= how->threads; threads++) {
    struct row_quality got[N];
    struct device dev = {0};
    struct device_options options = how_options(how, P, 1, 0);
    options.threads = threads;
    memset(got, 0x55, sizeof got);
    int status = device_open(&dev, &options), wrong = 0;
    if (!status)
      status =
          device_quality(&dev, &(struct quality_job){N, rows, atoms, start, support, codes, got});
    for (int i = 0; i < N && !status; i++) {
      const float *vector[K];
      idx m = (idx)(start[i + 1] - start[i]);
      for (idx j = 0; j < m; j++) vector[j] = atoms + support[start[i] + j] * P;
      struct row_quality want =
          quality_reference(rows + (gidx)i * P, vector, m, 1, P, codes + start[i]);
      wrong += memcmp(&want, &got[i], sizeof want) != 0;
    }
    ok(!status && !wrong, "quality by %s, %d threads: %d rows are wrong", how->variant, threads,
       wrong);
    device_close(&dev);
  }
}

int main(void)
{
  struct how those[LOOP_VARIANTS];
  int count = 0;
  if (device_check_fma()) {
    skip("%s", status_message());
    return done_testing();
  }
  for (int v = 0; v < LOOP_VARIANTS; v++) {
    those[count] = (struct how){.kind = "cpu", .variant = loop_variants[v], .threads = 2};
    count += how_present(&those[count]);
  }
  check_codes(those, count);
  claim_begin("the quality of given codes: the reference's bits");
  for (int i = 0; i < count; i++) check_quality(&those[i]);
  claim_end();
  return done_testing();
}
