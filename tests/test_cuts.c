/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: with a mean number of codes per row, encode_run() gives the largest scores of all rows
 * (N.58), with the bits of the references, which sort them.  Cases have active atoms and imported
 * encoders, equal rows and atoms, cuts that cannot be told from the first rows, more codes than
 * positive scores, and a single code, for any number of ranks, blocks and threads.
 * RUN: np=1 3, full=1 2 3 5 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/status.h"
#include "base/sums.h"
#include "encode/encode.h"
#include "tap.h"

enum { MOST = 4 * ROW_BLOCK + 1203, K = 21, P = 11, LOOKS = 2 };

static float rows[MOST * P], centered[MOST * P], atoms[K * P], bias[K], norm[K];
static float scores[MOST * K], wanted[MOST * K], found[MOST * K], left[MOST * P];
static real mean[P];

static int rows_read(void *self, gidx first, idx count, float *out)
{
  (void)self;
  memcpy(out, rows + first * P, (size_t)count * P * sizeof *rows);
  return OK;
}

static int matrix_read(void *self, idx first, idx count, float *out)
{
  (void)self;
  memcpy(out, atoms + (gidx)first * P, (size_t)count * P * sizeof *out);
  return OK;
}

static int block_keep(void *self, const struct support_block *b)
{
  (void)self;
  for (idx i = 0; i < b->n; i++)
    for (gidx j = b->start[i]; j < b->start[i + 1]; j++)
      found[(b->first + i) * K + b->atoms[j]] = b->codes[j];
  return OK;
}

static float draw(uint64_t stream, uint64_t n)
{
  return (float)((real)(random_bits(9, stream, n) >> 40) * 0x1p-23 - 1);
}

/* Fill rows, atoms and mean.  Atoms 4 and 9 have equal scores in every row, some hundred rows are
 * equal, and the last rows are larger. */
static void fill(void)
{
  for (int i = 0; i < MOST * P; i++) rows[i] = draw(1, (uint64_t)i);
  for (int i = 100; i < 700; i++) memcpy(rows + i * P, rows + 7 * P, P * sizeof *rows);
  for (int i = MOST - 1000; i < MOST - 500; i++) memcpy(rows + i * P, rows + 7 * P, P * 4);
  for (int i = (MOST - 900) * P; i < MOST * P; i++) rows[i] *= 50;
  for (int a = 0; a < K; a++) {
    real sum = 0;
    for (int c = 0; c < P; c++) {
      atoms[a * P + c] = draw(2, (uint64_t)(a * P + c));
      sum += atoms[a * P + c] * atoms[a * P + c];
    }
    for (int c = 0; c < P; c++) atoms[a * P + c] /= (float)sqrt(sum);
    norm[a] = 1.5F + draw(6, (uint64_t)a);
  }
  for (int c = 0; c < P; c++) mean[c] = 0.25 * draw(8, (uint64_t)c);
  memcpy(atoms + 9 * P, atoms + 4 * P, P * sizeof *atoms);
  norm[9] = norm[4];
  memcpy(centered, rows, sizeof rows);
  rows_center(centered, MOST, P, mean);
}

struct cut {
  gidx n;
  idx block, threads;
  real l0;
};

/* wanted[] <- the codes of the reference; *of <- its cut, unless atoms are active. */
static int reference(const struct encoder *e, const struct cut *cut, struct score_cut *of)
{
  struct find_rows r = {.n = (idx)cut->n, .k = K, .p = P, .x = centered, .atoms = atoms};
  struct encoder whole = *e;
  r.relative = e->active.relative;
  r.floor = e->active.floor;
  float least[LOOKS + 1];
  whole.weights = atoms;
  if (e->kind == ENCODER_ACTIVE)
    return find_batch_reference(&r, cut->l0, e->active.looks, wanted, left, least);
  for (gidx i = 0; i < cut->n; i++)
    for (idx a = 0; a < K; a++) scores[i * K + a] = encoder_score(&whole, centered + i * P, a);
  gidx most = cuts_most(cut->l0, cut->n);
  TRY(cuts_reference(scores, (idx)cut->n, K, most, wanted, of));
  for (gidx i = 0; i < cut->n * K; i++)
    if (wanted[i] > 0) wanted[i] = encoder_code(e, wanted[i], (idx)(i % K));
  return OK;
}

static int run(struct comm *c, const struct encoder *e, const struct cut *cut,
               struct score_cuts *cuts)
{
  struct encode_result result;
  struct row_source source = {
      .n = cut->n, .p = P, .name = "rows", .row_bytes = 4.0 * P, .read = rows_read};
  struct atom_source unit = {.k = K, .d = 1, .p = P, .name = "atoms", .read = matrix_read};
  const struct support_sink sink = {NULL, block_keep};
  struct encode_task task = {.rows = &source,
                             .atoms = &unit,
                             .mean = mean,
                             .sink = &sink,
                             .encoder = e,
                             .weights = &unit,
                             .cuts = cuts,
                             .top_s = K,
                             .rounds = 1,
                             .groups = c->size,
                             .block = cut->block,
                             .threads = cut->threads,
                             .device = "cpu",
                             .variant = "auto",
                             .codes = 1,
                             .nonnegative = 1,
                             .max_cosine = 100};
  struct encode_memory m;
  memset(found, 0, sizeof found);
  *cuts = (struct score_cuts){.l0 = cut->l0};
  encode_cut_choose(&task, c->size);
  int status = encode_memory(&task, c->size, c->rank, &m);
  if (!status) status = encode_run(&task, c, &result);
  ok(status || m.codes == result.memory.codes, "memory: %lld, not %lld", (long long)m.codes,
     (long long)result.memory.codes);
  encode_free(&result);
  return status;
}

static void check(struct comm *c, const char *what, const struct encoder *e)
{
  static const struct cut cuts[] = {{MOST, 0, 1, 2.3},  {MOST, 1000, 2, 0.7},   {300, 17, 3, 1.9},
                                    {300, 0, 1, K},     {300, 64, 2, 1 / 300.}, {1, 0, 1, 3},
                                    {MOST, 0, 2, 0.043}};
  for (int i = 0; i < (int)(sizeof cuts / sizeof cuts[0]); i++) {
    const struct cut *cut = &cuts[i];
    struct score_cuts got;
    struct score_cut of = {0};
    int status = run(c, e, cut, &got), active = e->kind == ENCODER_ACTIVE;
    ok(status == OK, "%s, l0 %g: %s", what, cut->l0, status ? status_message() : "");
    ok(got.n == (active ? LOOKS + 1 : 1) && got.rows, "%s: %d cuts", what, got.n);
    if (c->rank) continue;
    ok(!reference(e, cut, &of), "the reference");
    gidx wrong = 0;
    for (gidx j = 0; j < cut->n * K; j++) wrong += memcmp(found + j, wanted + j, 4) != 0;
    ok(wrong == 0, "%s, %lld rows, l0 %g: %lld codes are wrong", what, (long long)cut->n, cut->l0,
       (long long)wrong);
    ok(active ||
           (of.least == got.at[0].least && of.row == got.at[0].row && of.ties == got.at[0].ties),
       "%s, l0 %g: cut %g, row %lld, ties %lld, not %g, %lld, %lld", what, cut->l0,
       (double)got.at[0].least, (long long)got.at[0].row, (long long)got.at[0].ties,
       (double)of.least, (long long)of.row, (long long)of.ties);
  }
}

int main(void)
{
  struct encoder e = {.k = K, .p = P, .top = 3, .centered = 1, .bias = bias};
  struct comm c;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  fill();
  claim_begin("codes of a given mean number per row have the bits of the reference");
  e.kind = ENCODER_TOPK;
  check(&c, "topk", &e);
  e.norm = norm;
  check(&c, "topk of a scaled decoder", &e);
  e.kind = ENCODER_RELU;
  e.rescaled = 1;
  check(&c, "relu, rescaled", &e);
  e = (struct encoder){.kind = ENCODER_ACTIVE, .k = K, .p = P, .centered = 1, .bias = bias};
  e.active = (struct found_encoder){.looks = LOOKS, .relative = 1, .floor = 0.3};
  check(&c, "active atoms", &e);
  e.active.relative = 0;
  check(&c, "active atoms by their products", &e);
  claim_end();
  comm_close(&c);
  return done_testing();
}
