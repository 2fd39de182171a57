/* SPDX-License-Identifier: BSD-3-Clause
 * The certified filter on a GPU gives the bits of the exact route, with wgmma and with mma.sync, on
 * data made against it; the check of its guesses is at work, and so is the probe. */
#include "filter_checks.h"

static const struct how hows[] = {
    {.kind = "cuda", .variant = "auto", .threads = 1, .filter = "on"},
    {.kind = "cuda", .variant = "auto", .threads = 1, .filter = "on", .filter_mma = 1}};

/* Dictionaries that are sampled, in several tiles, with every number of vectors a frame. */
static void check_large(void)
{
  static const idx ks[] = {1030, 2047, 9000, 20011}, takes[] = {1, 32, 70, 256};
  for (int i = 0; i < LENGTH(ks); i++)
    for (int u = 0; u < 4; u++)
      problem_run((struct problem){.n = 131 + 40 * u,
                                   .p = 40 + 13 * u,
                                   .d = u % 2 ? 1 : 1 + (2 * i + u) % 8,
                                   .take = takes[(i + u) % 4],
                                   .k = ks[i] / (u % 2 ? 1 : 2),
                                   .tile = 700,
                                   .excluded = u == 2 ? 5 : 0,
                                   .shuffled = u / 2,
                                   .kind = (enum kind)((3 * i + u) % KINDS)},
                  hows, LENGTH(hows));
}

static void check_paths(const struct how *how)
{
  struct problem c = {.n = 60, .p = 48, .d = 1, .take = 4, .k = 3000, .tile = 700};
  const char *unit = how->filter_mma ? "mma.sync" : "the unit at hand";
  c.kind = RANDOM;
  struct filter_counts f = paths(c, how);
  ok(f.rows[FILTER_CERTIFIED] == 60 && f.candidates >= 240 && f.candidates < 60 * 8 &&
         f.most * 60 >= f.candidates,
     "%s: random rows are certified, %.1f candidates each", unit, (double)f.candidates / 60);
  c.kind = ZERO;
  f = paths(c, how);
  ok(f.rows[FILTER_CERTIFIED] == 30 && f.rows[FILTER_SMALL] == 30, "%s: rows of zeros", unit);
  c.kind = BAD;
  f = paths(c, how);
  ok(f.rows[FILTER_SCORE] == 60, "%s: atoms that are not finite", unit);
  c.kind = SUBNORMAL;
  f = paths(c, how);
  ok(f.rows[FILTER_SMALL] == 60, "%s: subnormal rows", unit);
  c.kind = NEAR;
  f = paths(c, how);
  ok(f.rows[FILTER_LIST] == 60, "%s: atoms that are nearly alike fill the lists", unit);
}

/* A guess above what the bound allows leaves rows to the exact path: nothing else changes. */
static void check_guess(void)
{
  struct how high = hows[0];
  struct problem c = {.n = 300, .p = 48, .d = 1, .take = 8, .k = 6000, .tile = 700};
  struct filter_counts right = paths(c, &high);
  high.filter_high = 0.4;
  struct filter_counts f = paths(c, &high);
  ok(right.rows[FILTER_GUESS] == 0 && right.rows[FILTER_CERTIFIED] == 300,
     "guesses are good: %lld rows certified", (long long)right.rows[FILTER_CERTIFIED]);
  ok(f.rows[FILTER_GUESS] > 0 && f.rows[FILTER_GUESS] + f.rows[FILTER_CERTIFIED] == 300,
     "guesses too high on purpose: %lld of 300 rows take the exact path",
     (long long)f.rows[FILTER_GUESS]);
}

/* Two atoms whose order the rounding to fp16 turns round, by nearly as much as the bound allows; in
 * units of the last place, all errors of one go up and all of the other down.  What is rounded: the
 * atoms, or the row. */
static void planted_fill(struct problem *c, int round_row)
{
  const float unit = round_row ? 0x1p-10f : 0x1p-12f, base = (round_row ? 1 : 0.25f) + 10 * unit;
  float *better = c->atoms + (gidx)700 * c->p, *worse = c->atoms + (gidx)900 * c->p;
  for (gidx i = 0; i < (gidx)c->k * c->p; i++) c->atoms[i] *= 0x1p-6f;
  for (idx i = 0; i < c->p; i++) {
    float down = base + 0.49f * unit, up = base + (i == c->p - 1 ? -0.49f : 0.51f) * unit;
    int first = i < c->p / 2;
    for (idx row = 0; row < c->n; row++)
      c->rows[row * c->p + i] = !round_row ? 1 : first ? down : up;
    better[i] = !round_row ? down : first ? 0.5f : 0;
    worse[i] = !round_row ? up : first ? 0 : 0.5f;
  }
}

static void check_planted(const struct how *how)
{
  for (int round_row = 0; round_row < 2; round_row++) {
    struct problem c = {.n = 4, .p = 16, .d = 1, .take = 1, .k = 1500, .tile = 1500};
    int good = problem_make(&c) == OK;
    planted_fill(&c, round_row);
    problem_answer(&c);
    ok(good && c.lists[0].atom == 1700 && problem_check(&c, how, 1) &&
           c.filter.rows[FILTER_CERTIFIED] == 4,
       "planted roundings of %s", round_row ? "the row" : "the atoms");
    arena_free(&c.arena);
  }
}

static void check_distrust(void)
{
  struct how doubted = hows[0];
  struct problem c = {.n = 60, .p = 48, .d = 1, .take = 4, .k = 3000, .tile = 700};
  doubted.filter_distrust = 1;
  struct filter_counts f = paths(c, &doubted);
  gidx rows = 0;
  for (int i = 0; i < FILTER_PATHS; i++) rows += f.rows[i];
  ok(rows == 0, "a matrix unit that adds otherwise is not used");
}

/* Every kernel and form once, for tools that slow everything: SMALL=1. */
static int check_small(void)
{
  const char *small = getenv("SMALL");
  if (!small || !*small) return 0;
  for (idx d = 1; d <= 8; d++)
    problem_run((struct problem){.n = 131,
                                 .p = 65 + d,
                                 .d = d,
                                 .take = 7,
                                 .k = 700 + 10 * d,
                                 .tile = 300,
                                 .excluded = d == 2 ? 3 : 0,
                                 .kind = d % 2 ? RANDOM : ZERO},
                hows, LENGTH(hows));
  return 1;
}

int main(void)
{
  static const enum kind broken_by[] = {FIXTURE, RANDOM, SCALED, HEAVY};
  if (!gpu_present()) return done_testing();
  if (check_small()) return done_testing();
  check_paths(&hows[0]);
  check_paths(&hows[1]);
  check_planted(&hows[0]);
  check_planted(&hows[1]);
  check_guess();
  check_distrust();
  check_without_bound(&hows[0], 32, broken_by, LENGTH(broken_by));
  check_shapes(hows, LENGTH(hows));
  check_kinds(hows, LENGTH(hows));
  check_widths(hows, LENGTH(hows));
  check_large();
  return done_testing();
}
