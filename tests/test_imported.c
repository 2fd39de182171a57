/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: encode_run() with an imported encoder gives the bits that the reference of (N.24) gives
 * row by row, for several kinds of encoders, with ties, rows of zeros and rows without a code, for
 * many rows, one row or none, and for any blocks, threads and ranks.  A score that is not finite is
 * named.  All ranks know a failure of the sink.  The forecast of memory is exact.
 * RUN: np=1 5, full=1 2 3 5 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/status.h"
#include "base/sums.h"
#include "encode/encode.h"
#include "tap.h"

enum { MOST = 5 * ROW_BLOCK + 203, K = 37, P = 19, TOP = 5 };

static float rows[MOST * P], atoms[K * P], weights[K * P], bias[K], threshold[K], norm[K];
static real mean[P];
static struct { /* what the sink got; it fails at row fails_at, if that is not 0 */
  gidx start[MOST + 1], next, fails_at;
  idx atoms[MOST * K];
  float score[MOST * K], codes[MOST * K];
} got;

static int rows_read(void *self, gidx first, idx count, float *out)
{
  (void)self;
  memcpy(out, rows + first * P, (size_t)count * P * sizeof *rows);
  return OK;
}

static int matrix_read(void *self, idx first, idx count, float *out)
{
  memcpy(out, (const float *)self + (gidx)first * P, (size_t)count * P * sizeof *out);
  return OK;
}

static int block_keep(void *self, const struct support_block *b)
{
  (void)self;
  if (b->first != got.next || !b->start || b->start[0] != 0) return ERR_INTERNAL;
  if (got.fails_at && b->first >= got.fails_at)
    return status_fail(ERR_IO, __FILE__, __LINE__, "the sink is full");
  gidx at = got.start[b->first];
  size_t bytes = (size_t)b->start[b->n] * 4;
  memcpy(got.atoms + at, b->atoms, bytes);
  memcpy(got.score + at, b->score, bytes);
  memcpy(got.codes + at, b->codes, bytes);
  for (idx i = 0; i <= b->n; i++) got.start[b->first + i] = at + b->start[i];
  got.next += b->n;
  return OK;
}

static float draw(uint64_t stream, uint64_t n)
{
  return (float)((real)(random_bits(7, stream, n) >> 40) * 0x1p-23 - 1);
}

/* Fill rows and encoder.  Atoms 3 and 20 have equal scores in every row, row 1 is zero, row 2 is
 * the mean, and the threshold of atom 5 is infinite. */
static void fill(void)
{
  for (int i = 0; i < MOST * P; i++) rows[i] = draw(1, (uint64_t)i);
  for (int i = 0; i < K * P; i++) weights[i] = draw(3, (uint64_t)i);
  for (int a = 0; a < K; a++) {
    real sum = 0;
    for (int c = 0; c < P; c++) {
      atoms[a * P + c] = draw(2, (uint64_t)(a * P + c));
      sum += atoms[a * P + c] * atoms[a * P + c];
    }
    for (int c = 0; c < P; c++) atoms[a * P + c] /= (float)sqrt(sum);
    bias[a] = 0.1F * draw(4, (uint64_t)a);
    threshold[a] = 0.5F + draw(5, (uint64_t)a);
    norm[a] = 1.5F + draw(6, (uint64_t)a);
  }
  for (int c = 0; c < P; c++) mean[c] = 0.25 * draw(8, (uint64_t)c);
  memcpy(weights + 20 * P, weights + 3 * P, P * sizeof *weights);
  bias[20] = bias[3];
  norm[20] = norm[3];
  memset(rows + P, 0, P * sizeof *rows);
  for (int c = 0; c < P; c++) rows[2 * P + c] = (float)mean[c];
  threshold[5] = INFINITY;
}

/* The number of rows that differ from the reference.  *entries <- the reference's number of
 * codes. */
static gidx wrong_rows(const struct encoder *e, gidx n, gidx *entries)
{
  struct encoder whole = *e;
  gidx wrong = 0;
  whole.weights = weights;
  *entries = 0;
  for (gidx i = 0; i < n; i++) {
    float x[P], scores[K], codes[K];
    idx support[K];
    memcpy(x, rows + i * P, sizeof x);
    if (e->centered) rows_center(x, 1, P, mean);
    for (idx a = 0; a < K; a++) scores[a] = encoder_score(&whole, x, a);
    idx count = encoder_select(&whole, scores, support, codes);
    gidx at = got.start[i];
    int same = got.start[i + 1] - at == count;
    for (idx j = 0; j < count && same; j++)
      same = got.atoms[at + j] == support[j] && memcmp(got.codes + at + j, codes + j, 4) == 0 &&
             memcmp(got.score + at + j, scores + support[j], 4) == 0;
    wrong += !same;
    *entries += count;
  }
  return wrong;
}

struct cut {
  gidx n;
  idx block, threads;
};

static int run(struct comm *c, const struct encoder *e, const struct cut *cut,
               struct encode_result *result)
{
  struct row_source source = {
      .n = cut->n, .p = P, .name = "rows", .row_bytes = 4.0 * P, .read = rows_read};
  struct atom_source unit = {
      .k = K, .d = 1, .p = P, .name = "atoms", .self = atoms, .read = matrix_read};
  struct atom_source matrix = {
      .k = K, .d = 1, .p = P, .name = "weights", .self = weights, .read = matrix_read};
  const struct support_sink sink = {NULL, block_keep};
  struct encode_task task = {.rows = &source,
                             .atoms = &unit,
                             .mean = mean,
                             .sink = &sink,
                             .encoder = e,
                             .weights = &matrix,
                             .top_s = e->kind == ENCODER_TOPK ? e->top : K,
                             .rounds = 1,
                             .groups = c->size,
                             .block = cut->block,
                             .threads = cut->threads,
                             .device = "cpu",
                             .variant = "auto",
                             .codes = 1,
                             .nonnegative = 1,
                             .max_cosine = 100};
  got.next = got.start[0] = 0;
  encode_cut_choose(&task, c->size);
  struct encode_memory m;
  int status = encode_memory(&task, c->size, c->rank, &m);
  if (!status) status = encode_run(&task, c, result);
  const struct encode_memory *taken = &result->memory;
  ok(status || (m.atoms == taken->atoms && m.matrix == taken->matrix && m.rows == taken->rows &&
                m.lists == taken->lists && m.codes == taken->codes && m.matrix > 0),
     "memory: %lld %lld %lld %lld", (long long)m.matrix, (long long)m.rows, (long long)m.lists,
     (long long)m.codes);
  return status;
}

static void check(struct comm *c, const char *what, const struct encoder *e)
{
  static const struct cut cuts[] = {
      {MOST, 0, 1}, {MOST, 1000, 2}, {MOST, 2 * ROW_BLOCK, 3}, {1, 0, 2},
      {0, 0, 1},    {7, 3, 5},       {ROW_BLOCK, 4096, 2},     {ROW_BLOCK + 1, 17, 1}};
  for (int i = 0; i < (int)(sizeof cuts / sizeof cuts[0]); i++) {
    struct encode_result result;
    gidx entries = 0, wrong = 0;
    int status = run(c, e, &cuts[i], &result);
    ok(status == OK, "%s, %lld rows: %s", what, (long long)cuts[i].n,
       status ? status_message() : "");
    if (c->rank == 0) {
      wrong = wrong_rows(e, cuts[i].n, &entries);
      ok(got.next == cuts[i].n && !wrong, "%s, %lld rows, block %d: %lld are wrong", what,
         (long long)cuts[i].n, cuts[i].block, (long long)wrong);
      ok(cuts[i].n == 0 || result.metrics.l0 == (real)entries / (real)cuts[i].n, "%s: l0 %g", what,
         result.metrics.l0);
    }
    encode_free(&result);
  }
}

/* Scores overflow in two rows.  Every rank names the lower row. */
static void check_overflow(struct comm *c, const struct encoder *e)
{
  struct encode_result result;
  float before = rows[(ROW_BLOCK + 9) * P];
  rows[(ROW_BLOCK + 9) * P] = rows[(ROW_BLOCK + 12) * P] = 3e38F;
  bias[8] = 3e38F;
  weights[8 * P] = 2;
  int status = run(c, e, &(struct cut){MOST, 0, 2}, &result);
  ok(status == ERR_INPUT && strstr(status_message(), "row 4105") &&
         strstr(status_message(), "atom 8"),
     "%d %s", status, status ? status_message() : "");
  comm_recover(c);
  status_clear();
  rows[(ROW_BLOCK + 9) * P] = rows[(ROW_BLOCK + 12) * P] = before;
}

/* If the sink of rank 0 fails at a row, all ranks end with its failure. */
static void check_sink(struct comm *c, const struct encoder *e)
{
  static const gidx at[] = {1, ROW_BLOCK, MOST - 203};
  for (int i = 0; i < 3; i++) {
    struct encode_result result;
    got.fails_at = at[i];
    int status = run(c, e, &(struct cut){MOST, ROW_BLOCK, 1}, &result);
    ok(status == ERR_IO && strstr(status_message(), "the sink is full"), "sink at %lld: %d",
       (long long)at[i], status);
    status_clear();
    comm_recover(c);
  }
  got.fails_at = 0;
}

int main(void)
{
  struct encoder e = {.k = K, .p = P, .top = TOP, .centered = 1, .bias = bias};
  struct comm c;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  fill();
  claim_begin("an imported encoder gives the bits of the reference");
  e.kind = ENCODER_RELU;
  check(&c, "relu", &e);
  e.kind = ENCODER_TOPK;
  check(&c, "topk", &e);
  e.top = K;
  check(&c, "topk of all", &e);
  e.top = 1;
  e.norm = norm;
  check(&c, "topk of a scaled decoder", &e);
  e.top = TOP;
  e.rescaled = 1;
  check(&c, "topk, rescaled", &e);
  e.threshold = threshold;
  e.kind = ENCODER_BATCHTOPK;
  check(&c, "batchtopk", &e);
  e.kind = ENCODER_JUMPRELU;
  e.centered = e.rescaled = 0;
  check(&c, "jumprelu of rows as they are", &e);
  check_sink(&c, &e);
  check_overflow(&c, &e);
  claim_end();
  comm_close(&c);
  return done_testing();
}
