/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: routing with the certified filter on a GPU gives the bits of exact routing, with wgmma and
 * with mma.sync, on data that are difficult for the filter.  The check of its threshold estimates
 * works, and so does the trial of the matrix unit. */
#include "screen_checks.h"

static const struct device_test mma = {.mma = 1, .columns = 32};
static const struct how hows[] = {
    {.kind = "cuda", .variant = "auto", .threads = 1, .filter = "on"},
    {.kind = "cuda", .variant = "auto", .threads = 1, .filter = "on", .test = &mma}};

/* More row tiles than fit into a band, and a last band of another height. */
static void check_bands(void)
{
  static const idx ns[] = {2049, 2200, 4500};
  for (int i = 0; i < LENGTH(ns); i++)
    problem_run(
        (struct problem){
            .n = ns[i], .p = 20, .d = 1 + i, .top_k = 5, .k = 1100, .tile = 500, .kind = RANDOM},
        hows, LENGTH(hows));
}

/* Dictionaries that are sampled, in several tiles, with 1, 3, 5 or 7 vectors per frame. */
static void check_large(void)
{
  static const idx ks[] = {1030, 2047, 9000, 20011}, top_ks[] = {1, 32, 70, 256};
  for (int i = 0; i < LENGTH(ks); i++)
    for (int u = 0; u < 4; u++)
      problem_run((struct problem){.n = 131 + 40 * u,
                                   .p = 40 + 13 * u,
                                   .d = u % 2 ? 1 : 1 + (2 * i + u) % 8,
                                   .top_k = top_ks[(i + u) % 4],
                                   .k = ks[i] / (u % 2 ? 1 : 2),
                                   .tile = 700,
                                   .excluded = u == 2 ? 5 : 0,
                                   .shuffled = u / 2,
                                   .nonnegative = u == 3,
                                   .kind = (enum kind)((3 * i + u) % KINDS)},
                  hows, LENGTH(hows));
}

/* Vectors with several pieces of 256 columns, for which the bound takes partial sums (C.3a). */
static void check_long(void)
{
  static const idx ps[] = {257, 700, 1300, 4097};
  for (int i = 0; i < LENGTH(ps); i++)
    for (int kind = i; kind < KINDS; kind += LENGTH(ps))
      problem_run((struct problem){.n = 37,
                                   .p = ps[i],
                                   .d = 1,
                                   .top_k = 7,
                                   .k = 3000,
                                   .tile = 700,
                                   .excluded = kind % 5 == 2,
                                   .nonnegative = kind / LENGTH(ps) % 4 == 1,
                                   .kind = (enum kind)kind},
                  hows, LENGTH(hows));
}

static void check_paths(const struct how *how)
{
  struct problem c = {.n = 60, .p = 48, .d = 1, .top_k = 4, .k = 3000, .tile = 700};
  const char *unit = how->test ? "mma.sync" : "the unit at hand";
  c.kind = RANDOM;
  struct screen_counts f = paths(c, how);
  ok(f.rows[SCREEN_CERTIFIED] == 60 && f.candidates >= 240 && f.candidates < 60 * 8 &&
         f.max * 60 >= f.candidates,
     "%s: random rows are certified, %.1f candidates each", unit, (double)f.candidates / 60);
  for (c.d = 2; c.d <= 8; c.d++) {
    f = paths(c, how);
    ok(f.rows[SCREEN_CERTIFIED] == 60, "%s: frames of %d are certified, %.1f candidates each", unit,
       c.d, (double)f.candidates / 60);
  }
  c.d = 1;
  for (c.p = 257; c.p < 2000; c.p += 600) {
    f = paths(c, how);
    ok(f.rows[SCREEN_CERTIFIED] == 60 && f.candidates < 60 * 8,
       "%s: rows of %d columns are certified, %.1f candidates each", unit, c.p,
       (double)f.candidates / 60);
  }
  c.p = 48;
  c.kind = ZERO;
  f = paths(c, how);
  ok(f.rows[SCREEN_CERTIFIED] == 30 && f.rows[SCREEN_SMALL] == 30, "%s: rows of zeros", unit);
  c.kind = BAD;
  f = paths(c, how);
  ok(f.rows[SCREEN_SCORE] == 60, "%s: atoms that are not finite", unit);
  c.kind = SUBNORMAL;
  f = paths(c, how);
  ok(f.rows[SCREEN_SMALL] == 60, "%s: subnormal rows", unit);
  c.kind = NEAR;
  f = paths(c, how);
  ok(f.rows[SCREEN_LIST] == 60, "%s: atoms that are nearly alike fill the lists", unit);
}

/* Nonnegative codes: a row is certified only if all scores of its support are positive. */
static void check_positive_paths(const struct how *how)
{
  struct problem c = {
      .n = 60, .p = 48, .d = 1, .top_k = 32, .k = 3000, .tile = 700, .nonnegative = 1};
  const char *unit = how->test ? "mma.sync" : "the unit at hand";
  c.kind = RANDOM;
  struct screen_counts f = paths(c, how);
  ok(f.rows[SCREEN_CERTIFIED] == 60, "%s: rows with many positive scores are certified", unit);
  static const enum kind few[] = {NEGATIVE, FEW, EDGE};
  for (int i = 0; i < LENGTH(few); i++) {
    c.kind = few[i];
    c.top_k = few[i] == FEW ? 100 : 32;
    f = paths(c, how);
    ok(f.rows[SCREEN_CERTIFIED] == 0,
       "%s: kind %d has too few positive scores: %lld rows left by their estimate, %lld by their "
       "list",
       unit, few[i], (long long)f.rows[SCREEN_ESTIMATE], (long long)f.rows[SCREEN_LIST]);
  }
}

/* If estimates are above what the bound allows, rows take the direct path.  Nothing else
 * changes. */
static void check_estimate(void)
{
  const struct device_test higher = {.threshold = 0.4};
  struct how high = hows[0];
  struct problem c = {.n = 300, .p = 48, .d = 1, .top_k = 8, .k = 6000, .tile = 700};
  struct screen_counts right = paths(c, &high);
  high.test = &higher;
  struct screen_counts f = paths(c, &high);
  ok(right.rows[SCREEN_ESTIMATE] == 0 && right.rows[SCREEN_CERTIFIED] == 300,
     "estimates are good: %lld rows certified", (long long)right.rows[SCREEN_CERTIFIED]);
  ok(f.rows[SCREEN_ESTIMATE] > 0 && f.rows[SCREEN_ESTIMATE] + f.rows[SCREEN_CERTIFIED] == 300,
     "estimates that are too high: %lld of 300 rows take the direct path",
     (long long)f.rows[SCREEN_ESTIMATE]);
}

/* Make atoms whose order changes by rounding to fp16, by nearly as much as the bound allows.  One
 * atom in twenty is planted.  In the score of the best planted atom all rounding errors have one
 * sign, and in the scores of the other planted atoms the opposite sign.  round_row: 1 if rows have
 * the rounding errors, 0 if atoms have them.  In a frame only the first vector is planted. */
static void planted_fill(struct problem *c, int round_row)
{
  const float unit = round_row ? 0x1p-10f : 0x1p-12f, base = (round_row ? 1 : 0.25f) + 10 * unit;
  for (gidx i = 0; i < (gidx)c->k * c->d * c->p; i++) c->atoms[i] *= 0x1p-6f;
  for (idx i = 0; i < c->p; i++) {
    float down = base + 0.49f * unit, up = base + (i >= c->p - 2 ? -0.49f : 0.51f) * unit;
    int first = i < c->p / 2;
    for (idx row = 0; row < c->n; row++)
      c->rows[row * c->p + i] = ldexpf(!round_row ? 1 : first ? down : up, 3 * row - 20);
    for (idx a = 0; a < c->k; a += 20) {
      float *vector = c->atoms + (gidx)a * c->d * c->p;
      for (idx m = 1; m < c->d; m++) vector[m * c->p + i] = 0;
      if (a == 700) vector[i] = !round_row ? down : first ? 0.5f : 0;
      if (a != 700) vector[i] = !round_row ? up : first ? 0 : 0.5f;
    }
  }
}

static void check_planted(const struct how *how, real high)
{
  struct device_test higher = how->test ? *how->test : (struct device_test){0};
  struct how with = *how;
  higher.threshold = high;
  with.test = high > 0 ? &higher : how->test;
  for (int u = 0; u < 12; u++) {
    idx d = u / 4 == 0 ? 1 : u / 4 == 1 ? 3 : 8, top_k = u / 2 % 2 ? 30 : 1;
    struct problem c = {.n = 14, .p = 16, .d = d, .top_k = top_k, .k = 1500, .tile = 1500};
    int good = problem_make(&c) == OK;
    planted_fill(&c, u % 2);
    problem_answer(&c);
    good = good && c.lists[0].atom == 1700 && problem_check(&c, &with, 1);
    ok(good && (high > 0 || c.filter.rows[SCREEN_CERTIFIED] == 14),
       "planted roundings of %s, d=%d top_k=%d, estimates %.3f higher", u % 2 ? "rows" : "atoms", d,
       top_k, high);
    arena_free(&c.arena);
  }
}

/* Rows whose scores overflow, although the dictionary is finite. */
static void check_overflow(void)
{
  struct problem c = {.n = 40, .p = 48, .d = 1, .top_k = 4, .k = 3000, .tile = 700};
  int good = problem_make(&c) == OK;
  for (gidx i = 0; i < (gidx)c.n * c.p; i++) c.rows[i] = ldexpf(c.rows[i], 124);
  problem_answer(&c);
  ok(good && c.bad.row >= 0 && problem_check(&c, &hows[0], 1) && c.filter.rows[SCREEN_SCORE] == 40,
     "scores that overflow are told as the direct path tells them");
  arena_free(&c.arena);
}

/* A cluster of atoms that the bound cannot tell apart, and that are the best of all rows.  They fit
 * into the list of each row, but there is no room for the pairs (row, atom) of all rows. */
static void check_crowded(void)
{
  struct problem c = {.n = 300, .p = 48, .d = 1, .top_k = 4, .k = 6000, .tile = 700};
  int good = problem_make(&c) == OK;
  for (idx a = 0; a < 200; a++)
    for (idx i = 0; i < c.p; i++)
      c.atoms[(gidx)(17 * a) * c.p + i] = c.rows[i] * (1 + 0x1p-22f * (float)(a % 7));
  for (idx row = 1; row < c.n; row++)
    memcpy(c.rows + (gidx)row * c.p, c.rows, (size_t)c.p * sizeof *c.rows);
  problem_answer(&c);
  good = good && problem_check(&c, &hows[0], 1);
  ok(good && c.filter.rows[SCREEN_LIST] > 0 && c.filter.rows[SCREEN_CERTIFIED] > 0,
     "a crowd of candidates: %lld rows have room, %lld have not",
     (long long)c.filter.rows[SCREEN_CERTIFIED], (long long)c.filter.rows[SCREEN_LIST]);
  arena_free(&c.arena);
}

static void check_distrust(void)
{
  static const struct device_test distrust = {.distrust = 1};
  struct how doubted = hows[0];
  struct problem c = {.n = 60, .p = 48, .d = 1, .top_k = 4, .k = 3000, .tile = 700};
  doubted.test = &distrust;
  struct screen_counts f = paths(c, &doubted);
  gidx rows = 0;
  for (int i = 0; i < SCREEN_PATHS; i++) rows += f.rows[i];
  ok(rows == 0, "rows that the filter took");
}

/* With SMALL=1, for slow tools: every kernel and form once.  Returns 0 without SMALL=1. */
static int check_small(void)
{
  if (!is_small()) return 0;
  claim_begin("every kernel and form: the exact route's bits");
  for (idx d = 1; d <= 8; d++)
    problem_run((struct problem){.n = 131,
                                 .p = 65 + d,
                                 .d = d,
                                 .top_k = 7,
                                 .k = 700 + 10 * d,
                                 .tile = 300,
                                 .excluded = d == 2 ? 3 : 0,
                                 .kind = d % 2 ? RANDOM : ZERO},
                hows, LENGTH(hows));
  for (int u = 0; u < 3; u++)
    problem_run((struct problem){.n = 131,
                                 .p = 66,
                                 .d = 1,
                                 .top_k = 7,
                                 .k = 700,
                                 .tile = 300,
                                 .excluded = u == 2 ? 3 : 0,
                                 .nonnegative = 1,
                                 .kind = u == 1 ? EDGE : RANDOM},
                hows, LENGTH(hows));
  claim_end();
  return 1;
}

int main(void)
{
  static const enum kind broken_by[] = {FIXTURE, RANDOM, SCALED, HEAVY};
  if (!gpu_present()) return done_testing();
  if (check_small()) return done_testing();
  for (int h = 0; h < LENGTH(hows); h++) {
    claim_begin("%s: rows take the direct path if and only if they must",
                hows[h].test ? "mma.sync" : "the unit at hand");
    check_paths(&hows[h]);
    check_positive_paths(&hows[h]);
    claim_end();
  }
  claim_begin("roundings planted against the bound: the exact route's bits");
  check_planted(&hows[0], 0);
  check_planted(&hows[1], 0);
  check_planted(&hows[0], 0.001);
  check_planted(&hows[0], 0.01);
  claim_end();
  check_overflow();
  check_crowded();
  claim_begin("rows with thresholds that are too high take the direct path");
  check_estimate();
  claim_end();
  claim_begin("a matrix unit that adds in another way than the proof assumes is not used");
  check_distrust();
  claim_end();
  check_without_bound(&hows[0], 32, broken_by, LENGTH(broken_by));
  claim_begin("shapes: the exact route's bits");
  check_shapes(hows, LENGTH(hows));
  claim_end();
  claim_begin("data that are hard for the filter: the exact route's bits");
  check_kinds(hows, LENGTH(hows));
  claim_end();
  claim_begin("widths, bands and sampled dictionaries: the exact route's bits");
  check_widths(hows, LENGTH(hows), 1100);
  check_bands();
  check_large();
  claim_end();
  claim_begin("long vectors: the exact route's bits");
  check_long();
  claim_end();
  return done_testing();
}
