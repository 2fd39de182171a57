/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: codes of rows whose supports have different lengths (N.24k) have the bits of the reference
 * for each row, for every variant and thread count.  Some rows have no atom, one atom, or more
 * atoms than columns, and some atoms are equal or zero.  A GPU is tested, too, if there is one. */
#include "device_how.h"
#include "variants.h"

#include "base/rng.h"
#include "encode/ragged.h"

enum { N = 700, K = 400, P = 43, LONGEST = 90 };

static float rows[N * P], atoms[K * P], got[N * LONGEST], want[N * LONGEST];
static idx support[N * LONGEST];
static gidx start[N + 1];
static struct row_quality quality[N], wanted[N];

/* Fill the problem.  Of 13 atoms one equals the atom before it, and one is zero.  Rows have 0 to 90
 * atoms; most have few. */
static void problem_fill(void)
{
  for (int i = 0; i < K * P; i++) {
    int like = i / P % 13;
    float normal = (float)random_normal(7, 1, (uint64_t)i);
    atoms[i] = like == 3 ? atoms[i - P] : like == 7 ? 0 : normal;
  }
  for (int i = 0; i < N; i++) {
    idx m = (idx)random_below(7, 2, (uint64_t)i, i % 9 ? 12 : LONGEST + 1);
    idx first = (idx)random_below(7, 3, (uint64_t)i, K);
    start[i + 1] = start[i] + m;
    for (idx j = 0; j < m; j++) support[start[i] + j] = (first + 7 * j) % K;
    for (int c = 0; c < P; c++) rows[i * P + c] = (float)random_normal(7, 4, (uint64_t)(i * P + c));
  }
}

static void problem_answer(int nonnegative, real rho)
{
  static real exact[LONGEST], work[2 * LONGEST * (LONGEST + 40)];
  for (int i = 0; i < N; i++) {
    const float *vector[LONGEST], *row = rows + i * P;
    idx m = (idx)(start[i + 1] - start[i]);
    for (idx j = 0; j < m; j++) vector[j] = atoms + support[start[i] + j] * P;
    if (nonnegative)
      codes_nonnegative_reference(row, vector, m, P, rho, exact, work);
    else
      codes_reference(row, vector, m, P, rho, exact, work);
    for (idx j = 0; j < m; j++) want[start[i] + j] = (float)exact[j];
    wanted[i] = quality_reference(row, vector, m, 1, P, want + start[i]);
  }
}

static int solve(const struct how *how, int threads, int nonnegative, real rho)
{
  struct device dev = {0};
  struct device_options options = how_options(how, P, 1, 0);
  struct ragged w = {0};
  struct buffer table = {0};
  options.nonnegative = nonnegative;
  options.threads = threads;
  memset(got, 0x55, sizeof got);
  memset(quality, 0x55, sizeof quality);
  const struct ragged_job job = {N, rows, start, support, got, quality, &table, rho};
  int status = device_open(&dev, &options);
  if (!status) status = buffer_wrap(&dev, &table, atoms, (gidx)sizeof atoms);
  if (!status) status = device_put(&dev, &table, 0, (gidx)sizeof atoms);
  if (!status) status = ragged_open(&w, &dev, P, N);
  if (!status) status = ragged_solve(&w, &job);
  ragged_close(&w);
  buffer_free(&dev, &table);
  device_close(&dev);
  return status;
}

static void check(const struct how *those, int count)
{
  static const real ridges[] = {0, 0.3};
  for (int kind = 0; kind < 4; kind++) {
    int nonnegative = kind & 1;
    problem_answer(nonnegative, ridges[kind / 2]);
    for (int i = 0; i < count; i++)
      for (int threads = 1; threads <= those[i].threads; threads++) {
        int status = solve(&those[i], threads, nonnegative, ridges[kind / 2]);
        ok(!status && !memcmp(got, want, (size_t)start[N] * sizeof *got) &&
               !memcmp(quality, wanted, sizeof quality),
           "%s %s, %d threads, nonnegative %d, rho %g: %s", those[i].kind, those[i].variant,
           threads, nonnegative, ridges[kind / 2], status ? status_message() : "other bits");
      }
  }
}

/* A row with too many atoms is found before anything is solved. */
static void check_long(void)
{
  static gidx offsets[] = {0, 3, 3 + RAGGED_MOST, 4 + 2 * RAGGED_MOST};
  const struct ragged_job job = {.n = 3, .start = offsets}, fine = {.n = 2, .start = offsets};
  ok(ragged_long(&job) == 2 && ragged_long(&fine) == -1, "rows of more than %d atoms", RAGGED_MOST);
}

int main(void)
{
  struct how those[LOOP_VARIANTS + 1];
  int count = 0;
  if (device_check_fma()) {
    skip("%s", status_message());
    return done_testing();
  }
  for (int v = 0; v < LOOP_VARIANTS; v++) {
    those[count] = (struct how){.kind = "cpu", .variant = loop_variants[v], .threads = 2};
    count += how_present(&those[count]);
  }
  those[count] = (struct how){.kind = "cuda", .variant = "auto", .threads = 1};
  count += how_present(&those[count]);
  problem_fill();
  claim_begin("codes and quality of rows of any length: the references' bits");
  check(those, count);
  claim_end();
  check_long();
  return done_testing();
}
