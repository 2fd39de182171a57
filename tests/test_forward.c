/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: forward_evaluate(), which evaluates encoders of other programs, has the bits of the
 * reference, (N.24) and (N.25), on any number of threads, for several kinds of encoders.  Of equal
 * scores, that of the atom with the lower index comes first. */
#include "encode/forward.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "model/codes.h"
#include "tap.h"

enum { N = 203, K = 37, P = 19, TOP = 5 };

static float rows[N * P], atoms[K * P], weights[K * P], bias[K], threshold[K], norm[K];
static real mean[P];

static int rows_read(void *self, gidx first, idx count, float *out)
{
  (void)self;
  memcpy(out, rows + first * P, (size_t)count * P * sizeof *rows);
  return 0;
}

static float draw(uint64_t stream, uint64_t n)
{
  return (float)((real)(random_bits(7, stream, n) >> 40) * 0x1p-23 - 1);
}

static void fill(void)
{
  for (int i = 0; i < N * P; i++) rows[i] = draw(1, (uint64_t)i);
  for (int i = 0; i < K * P; i++) atoms[i] = 0.4F * draw(2, (uint64_t)i);
  for (int i = 0; i < K * P; i++) weights[i] = draw(3, (uint64_t)i);
  for (int a = 0; a < K; a++) bias[a] = 0.1F * draw(4, (uint64_t)a);
  for (int a = 0; a < K; a++) threshold[a] = 0.5F + draw(5, (uint64_t)a);
  for (int a = 0; a < K; a++) norm[a] = 1.5F + draw(6, (uint64_t)a);
  for (int c = 0; c < P; c++) mean[c] = 0.3 * draw(8, (uint64_t)c);
  memcpy(weights + 20 * P, weights + 3 * P, P * sizeof *weights); /* so that scores are equal */
  bias[20] = bias[3];
  memcpy(atoms + 30 * P, atoms + 4 * P, P * sizeof *atoms);
}

/* The quality of a row by the reference.  e NULL: matching pursuit, which may stop early. */
static struct row_quality judge(const struct encoder *e, int stops, const float *raw)
{
  const float *vector[K];
  float x[P], scores[K], codes[K];
  idx support[K], n = 0;
  memcpy(x, raw, sizeof x);
  rows_center(x, 1, P, mean);
  for (int a = 0; a < K && e; a++) scores[a] = encoder_score(e, e->centered ? x : raw, a);
  if (e) n = encoder_select(e, scores, support, codes);
  float residual[P];
  memcpy(residual, x, sizeof x);
  for (int step = 0; step < TOP && !e; step++) {
    const struct encoder plain = {.k = K, .p = P, .weights = atoms, .bias = (float[K]){0}};
    idx had = n;
    for (int a = 0; a < K; a++) scores[a] = encoder_score(&plain, residual, a);
    n = pursuit_step(atoms, K, P, scores, residual, support, codes, n);
    if (stops && n == had) break;
  }
  for (idx j = 0; j < n; j++) vector[j] = atoms + support[j] * P;
  return quality_reference(x, vector, n, 1, P, codes);
}

static void check(const char *what, const struct encoder *e, int stops)
{
  struct row_source source = {.n = N, .p = P, .name = "rows", .read = rows_read};
  struct comm c = {.size = 1, .local_size = 1};
  real error = 0, cosine = 0;
  gidx nonzero = 0;
  for (int i = 0; i < N; i++) {
    struct row_quality q = judge(e, stops, rows + i * P);
    error += q.error;
    cosine += q.cosine;
    nonzero += q.nonzero;
  }
  for (int threads = 1; threads <= 5; threads += 2) {
    struct forward_task task = {&source, mean, atoms, K, P, e, TOP, stops, threads};
    struct metrics m = {0};
    int status = forward_evaluate(&task, &c, &m);
    ok(!status && m.mean_squared_error == error / ((real)N * P) && m.mean_cosine == cosine / N &&
           m.l0 == (real)nonzero / N && m.explained_variance < 1,
       "%s, %d threads: mean squared error %.17g, %g atoms per row", what, threads,
       m.mean_squared_error, m.l0);
  }
}

/* Of atoms with equal scores topk takes the one with the lower index first. */
static void check_ties(void)
{
  const float scores[] = {0.5F, 2, 1, 2, -1, 1, 0};
  struct encoder e = {.kind = ENCODER_TOPK, .k = 7, .top = 3};
  idx support[7];
  float codes[7];
  idx n = encoder_select(&e, scores, support, codes);
  ok(n == 3 && support[0] == 1 && support[1] == 3 && support[2] == 2,
     "topk: of equal scores that of the lower atom comes first");
  e.top = 7;
  n = encoder_select(&e, scores, support, codes);
  ok(n == 5 && support[3] == 5 && support[4] == 0,
     "topk: scores that are not positive are left out");
  e.kind = ENCODER_RELU;
  n = encoder_select(&e, scores, support, codes);
  ok(n == 5 && support[0] == 0 && support[4] == 5 && codes[1] == 2,
     "relu: codes are in the order of atoms");
}

int main(void)
{
  struct encoder e = {.k = K, .p = P, .top = TOP, .centered = 1, .weights = weights, .bias = bias};
  fill();
  e.kind = ENCODER_RELU;
  check("relu", &e, 0);
  e.kind = ENCODER_TOPK;
  check("topk", &e, 0);
  e.norm = norm;
  check("topk of a scaled decoder", &e, 0);
  e.rescaled = 1;
  check("topk, rescaled", &e, 0);
  e.kind = ENCODER_JUMPRELU;
  e.threshold = threshold;
  e.centered = e.rescaled = 0;
  check("jumprelu of rows as they are", &e, 0);
  check("matching pursuit", NULL, 0);
  check("matching pursuit that stops", NULL, 1);
  check_ties();
  return done_testing();
}
