/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: a refit that keeps its supports has the bits of the atoms and codes of its reference
 * (N.24k, N.20k), on any number of ranks.  Supports have different lengths, a sum block has no
 * entries, two atoms are equal, some atoms are in no row, and some rows have more atoms than
 * columns.
 * RUN: np=1 2 3 5 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/sums.h"
#include "comm/comm.h"
#include "fit/kept_moves.h"
#include "model/kept.h"
#include "tap.h"

enum { N = 3 * ROW_BLOCK + 77, K = 70, P = 13, LONGEST = 20, SWEEPS = 2 };

static float x[N * P], table[K * P], codes[N * LONGEST], score[N * LONGEST];
static idx support[N * LONGEST];
static gidx start[N + 1];

static int rows_give(void *self, gidx first, idx count, float *out)
{
  (void)self;
  memcpy(out, x + first * P, (size_t)count * P * sizeof *out);
  return OK;
}

static int atoms_give(void *self, idx first, idx count, float *out)
{
  (void)self;
  memcpy(out, table + first * P, (size_t)count * P * sizeof *out);
  return OK;
}

static int starts_give(void *self, gidx first, gidx count, gidx *out)
{
  (void)self;
  memcpy(out, start + first, ((size_t)count + 1) * sizeof *out);
  return OK;
}

static int entries_give(void *self, gidx first, gidx count, idx *atoms, float *scores, float *out)
{
  (void)self;
  memcpy(atoms, support + first, (size_t)count * sizeof *atoms);
  if (scores) memcpy(scores, score + first, (size_t)count * sizeof *scores);
  if (out) memcpy(out, codes + first, (size_t)count * sizeof *out);
  return OK;
}

/* Make the problem.  Atom 5 equals atom 4, the last three atoms are in no row, and the second sum
 * block has no entries. */
static void problem_make(void)
{
  for (int a = 0; a < K; a++) {
    real norm = 0;
    for (int c = 0; c < P; c++) {
      real v = random_normal(1, 1, (uint64_t)(a * P + c));
      table[a * P + c] = (float)v;
      norm += v * v;
    }
    for (int c = 0; c < P; c++) table[a * P + c] = (float)(table[a * P + c] / sqrt(norm));
  }
  memcpy(table + 5 * P, table + 4 * P, P * sizeof *table);
  for (int i = 0; i < N; i++) {
    idx m = i / ROW_BLOCK == 1 ? 0 : (idx)random_below(1, 2, (uint64_t)i, i % 9 ? 5 : LONGEST + 1);
    idx first = (idx)random_below(1, 3, (uint64_t)i, K - 3);
    start[i + 1] = start[i] + m;
    for (idx j = 0; j < m; j++) support[start[i] + j] = (first + j) % (K - 3);
    for (int c = 0; c < P; c++) x[i * P + c] = (float)random_normal(1, 4, (uint64_t)(i * P + c));
  }
  for (gidx e = 0; e < start[N]; e++) codes[e] = score[e] = 1;
}

/* atoms, wanted <- atoms and codes of the reference after the sweeps. */
static int answer(int nonnegative, real rho, float *atoms, float *wanted)
{
  const struct kept_model m = {N, K, P, x, start, support, nonnegative, rho};
  memcpy(atoms, table, sizeof table);
  TRY(kept_codes_reference(&m, atoms, wanted));
  for (int i = 0; i < SWEEPS; i++) {
    TRY(kept_atoms_reference(&m, wanted, KEPT_PASSES, atoms));
    TRY(kept_codes_reference(&m, atoms, wanted));
  }
  return OK;
}

static int sweeps_run(struct kept *w, const struct kept_task *task, struct comm *c)
{
  TRY(kept_open(w, task, c));
  TRY(kept_solve(w));
  for (int i = 0; i < SWEEPS; i++) {
    TRY(kept_move(w));
    TRY(kept_solve(w));
  }
  return OK;
}

static void check(struct comm *c, int nonnegative, real rho)
{
  static float atoms[K * P], wanted[N * LONGEST];
  const struct row_source rows = {
      .n = N, .p = P, .name = "rows", .read = rows_give, .row_bytes = P * sizeof(float)};
  const struct atom_source source = {.k = K, .d = 1, .p = P, .name = "atoms", .read = atoms_give};
  const struct support_source supports = {.n = N,
                                          .entries = start[N],
                                          .k = K,
                                          .d = 1,
                                          .has_codes = 1,
                                          .name = "supports",
                                          .starts = starts_give,
                                          .read = entries_give};
  const struct kept_task task = {.rows = &rows,
                                 .atoms = &source,
                                 .supports = &supports,
                                 .top = LONGEST,
                                 .nonnegative = nonnegative,
                                 .rho = rho,
                                 .max_cosine = K,
                                 .threads = 2,
                                 .device = "cpu",
                                 .variant = "auto"};
  struct kept w = {0};
  int status = answer(nonnegative, rho, atoms, wanted);
  if (!status) status = sweeps_run(&w, &task, c);
  const struct kept_rows *r = &w.rows;
  ok(!status, "nonnegative %d, rho %g: %s", nonnegative, rho, status ? status_message() : "runs");
  if (status) return;
  ok(!memcmp(w.atoms, atoms, sizeof atoms), "nonnegative %d, rho %g: atoms", nonnegative, rho);
  ok(!r->of.n || !memcmp(r->of.codes, wanted + start[r->first], (size_t)r->of.n * sizeof *wanted),
     "nonnegative %d, rho %g: codes", nonnegative, rho);
  ok(!memcmp(w.atoms + (K - 3) * P, table + (K - 3) * P, 3 * P * sizeof *table),
     "atoms in no row stay");
  kept_close(&w);
}

int main(void)
{
  struct comm c;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  if (device_check_fma()) {
    skip("%s", status_message());
    return done_testing();
  }
  problem_make();
  claim_begin("atoms and codes of two sweeps have the reference's bits");
  for (int i = 0; i < 4; i++) check(&c, i & 1, i / 2 ? 0.3 : 0);
  claim_end();
  comm_close(&c);
  return done_testing();
}
