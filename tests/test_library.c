/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: handles of libsagitta give the codes of the references of src/model, for calls with many
 * and with few rows in turn, in any rounding mode of the caller.  Wrong options or rows give a code
 * and a message, and the handle remains usable.
 * RUN: np=1 */
#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/status.h"
#include "library/library.h"
#include "model/dictionary.h"
#include "model/find.h"
#include "model/encoder.h"
#include "model/route.h"
#include "tap.h"

enum { K = 40, P = 24, S = 6, N = 150 };

static float atoms[K * P], x[N * P], bias[K];

static void numbers_make(void)
{
  for (gidx i = 0; i < K * P; i++) atoms[i] = (float)random_normal(1, 0, (uint64_t)i);
  for (gidx i = 0; i < N * P; i++) x[i] = (float)random_normal(1, 1, (uint64_t)i);
  for (idx i = 0; i < K; i++) bias[i] = 0.125f * (float)(i % 3);
  atoms_normalize(atoms, K, 1, P);
  memset(x + 7 * P, 0, P * sizeof *x);
}

static struct sagitta_options options_of(int threads)
{
  return (struct sagitta_options){.abi = SAGITTA_ABI,
                                  .k = K,
                                  .p = P,
                                  .atoms = atoms,
                                  .top_s = S,
                                  .rounds = 1,
                                  .threads = threads};
}

static struct sagitta *handle_open(const struct sagitta_options *o)
{
  struct sagitta *h;
  ok(sagitta_open(o, &h) == OK, "open: %s", sagitta_message());
  return h;
}

static void check_routed(int threads)
{
  static const int64_t sizes[] = {3, N, 0, 1, 50};
  const struct sagitta_options o = options_of(threads);
  struct sagitta *h = handle_open(&o);
  struct entry lists[N * S];
  idx all[K];
  struct bad_score bad = {-1, -1};
  for (idx a = 0; a < K; a++) all[a] = a;
  const struct route_reference r = {
      .n = N, .p = P, .d = 1, .top_k = S, .count = K, .rows = x, .atoms = atoms, .atom_of = all};
  ok(route_reference(&r, lists, &bad) == OK, "reference");
  for (int i = 0; i < LENGTH(sizes); i++) {
    struct sagitta_codes c;
    int same = sagitta_encode(h, x, sizes[i], &c) == OK && c.start[sizes[i]] == sizes[i] * S;
    for (int64_t e = 0; same && e < sizes[i] * S; e++)
      same = c.atoms[e] == lists[e].atom && c.score[e] == entry_score(lists[e], 1, 0);
    ok(same, "supports of %d rows, %d threads", (int)sizes[i], threads);
  }
  sagitta_close(h);
}

static void check_encoder(int threads)
{
  struct sagitta_options o = options_of(threads);
  o.encoder = "topk";
  o.top = S;
  o.weights = atoms;
  o.bias = bias;
  const struct encoder e = {
      .kind = ENCODER_TOPK, .k = K, .p = P, .top = S, .weights = atoms, .bias = bias};
  struct sagitta *h = handle_open(&o);
  struct sagitta_codes c;
  float scores[K], codes[K];
  idx support[K];
  int same = sagitta_encode(h, x, N, &c) == OK;
  for (idx i = 0; i < N && same; i++) {
    for (idx a = 0; a < K; a++) scores[a] = encoder_score(&e, x + i * P, a);
    idx n = encoder_select(&e, scores, support, codes);
    same = c.start[i + 1] - c.start[i] == n &&
           !memcmp(c.atoms + c.start[i], support, (size_t)n * sizeof *support) &&
           !memcmp(c.codes + c.start[i], codes, (size_t)n * sizeof *codes);
  }
  ok(same, "an encoder, %d threads", threads);
  sagitta_close(h);
}

static void check_active(int threads)
{
  static const float cuts[] = {2, 1.5f};
  struct sagitta_options o = options_of(threads);
  o.encoder = "active";
  o.cuts = cuts;
  o.n_cuts = LENGTH(cuts);
  o.floor = 0.5;
  o.centered = 1;
  const struct find_rows rows = {.n = N, .k = K, .p = P, .x = x, .atoms = atoms, .floor = 0.5};
  const struct found_encoder by = {.looks = 1, .threshold = {2, 1.5f}, .floor = 0.5};
  static float codes[N * K], dense[N * K];
  struct sagitta *h = handle_open(&o);
  struct sagitta_codes c;
  ok(find_encode_reference(&rows, &by, codes) == OK, "reference");
  ok(sagitta_encode(h, x, N, &c) == OK, "active: %s", sagitta_message());
  memset(dense, 0, sizeof dense);
  for (idx i = 0; i < N; i++)
    for (int64_t e = c.start[i]; e < c.start[i + 1]; e++) dense[i * K + c.atoms[e]] = c.codes[e];
  ok(c.start[N] > 0 && !memcmp(dense, codes, sizeof dense), "active atoms, %d threads", threads);
  sagitta_close(h);
}

static void refused(struct sagitta_options o, int code, const char *words)
{
  struct sagitta *h;
  int got = sagitta_open(&o, &h);
  ok(got == code && !h && strstr(sagitta_message(), words), "%s: %d %s", words, got,
     sagitta_message());
  sagitta_close(h);
}

static void check_refusals(void)
{
  struct sagitta_options o = options_of(1), bad = o;
  bad.abi++;
  refused(bad, ERR_USAGE, "ABI");
  bad = o;
  bad.top_s = K + 1;
  refused(bad, ERR_USAGE, "top_s");
  bad = o;
  bad.rounds = 0;
  refused(bad, ERR_USAGE, "rounds");
  bad = o;
  bad.variant = "none";
  refused(bad, ERR_USAGE, "none");
  bad = o;
  bad.encoder = "cubic";
  refused(bad, ERR_INPUT, "cubic");
  bad = o;
  bad.encoder = "relu";
  refused(bad, ERR_INPUT, "arrays");
  bad = o;
  bad.encoder = "active";
  refused(bad, ERR_INPUT, "thresholds");
  struct sagitta *h = handle_open(&o);
  struct sagitta_codes c;
  float kept = x[5 * P + 3];
  x[5 * P + 3] = INFINITY;
  ok(sagitta_encode(h, x, N, &c) == ERR_INPUT && strstr(sagitta_message(), "row 5, column 3"),
     "inf: %s", sagitta_message());
  x[5 * P + 3] = kept;
  ok(sagitta_encode(h, x, N, &c) == OK && c.n == N, "the handle is usable after an error");
  sagitta_close(h);
}

/* Threads that a call starts begin with the rounding mode of the caller.  The first call with this
 * number of threads starts some. */
static void check_rounding(int threads)
{
  static int32_t kept_atoms[N * S], chosen[N * S];
  static float kept_codes[N * S], codes[N * S];
  const struct sagitta_options o = options_of(threads);
  fesetround(FE_UPWARD);
  struct sagitta *h = handle_open(&o);
  struct sagitta_codes c;
  int status = sagitta_support(h, x, N, NULL, chosen, codes);
  if (!status) status = sagitta_encode(h, x, N, &c);
  int stays = fegetround() == FE_UPWARD;
  fesetround(FE_TONEAREST);
  ok(!status && stays, "a caller that rounds up still rounds up after calls, %d threads", threads);
  int same = !status && !memcmp(c.codes, codes, sizeof codes);
  sagitta_close(h);
  h = handle_open(&o);
  status = sagitta_support(h, x, N, NULL, kept_atoms, kept_codes);
  ok(same && !status && !memcmp(kept_atoms, chosen, sizeof chosen) &&
         !memcmp(kept_codes, codes, sizeof codes),
     "a caller that rounds up gets the same bits, %d threads", threads);
  sagitta_close(h);
}

int main(void)
{
  numbers_make();
  check_rounding(3);
  for (int threads = 1; threads <= 2; threads++) {
    check_routed(threads);
    check_encoder(threads);
    check_active(threads);
  }
  check_refusals();
  return done_testing();
}
