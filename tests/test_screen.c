/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: routing with the certified filter gives the bits of exact routing, with every variant, on
 * data that are difficult for the filter.  The bound holds.  Rows take the direct path if they
 * must, and only then.  With a bound of 0 results are wrong. */
#include "device/cpu/cpu.h"
#include "device/cpu/isa.h"
#include "screen_bound.h"
#include "screen_checks.h"
#include "model/screen.h"

static const struct how variants[] = {
    {.kind = "cpu", .variant = "avx2", .threads = 2, .filter = "on"},
    {.kind = "cpu", .variant = "avx512vl", .threads = 2, .filter = "on"},
    {.kind = "cpu", .variant = "avx512", .threads = 2, .filter = "on"}};

/* those[] <- the variants that this processor has.  Returns their number. */
static int variants_present(struct how *those)
{
  int count = 0;
  for (int v = 0; v < LENGTH(variants); v++)
    if (how_present(&variants[v])) those[count++] = variants[v];
  return count;
}

/* The size of a score (d = 1), or of a gate (d > 1), by the exact chains of routing. */
static real size_exact(const float *row, const float *frame, idx d, idx p)
{
  float value = route_value(row, frame, d, p);
  return d == 1 ? fabs((real)value) : sqrt((real)value);
}

/* The mean of the norms of the first 1, 2, .. p columns. */
static real mean_norm(const float *v, idx p)
{
  real square = 0, norms = 0;
  for (idx c = 0; c < p; c++) norms += sqrt(square += (real)v[c] * v[c]);
  return norms / p * (1 + 0x1p-30);
}

/* The error of a size that is computed from integers, divided by its bound.  The computed size is
 * the scale of the row, times the scale of the frame, times the size of the integers. */
static real part_of_bound(const struct problem *c, idx row, idx frame, int levels)
{
  static int8_t qx[4096], qd[8 * 4096];
  struct quantized x, f;
  const float *at = c->rows + (gidx)row * c->p, *atoms = c->atoms + (gidx)frame * c->d * c->p;
  screen_quantize(at, 1, c->p, SCREEN_ROW_LEVELS, qx, &x);
  screen_quantize(atoms, c->d, c->p, levels, qd, &f);
  if (!(x.norm * f.norm < SCREEN_HUGE(c->d))) return 0; /* the row takes the direct path */
  x.mean = mean_norm(at, c->p);
  struct screen_bound b = screen_bound(&x, c->d, c->p, 0);
  real squares = 0;
  for (idx m = 0; m < c->d; m++) {
    gidx sum = 0;
    for (idx i = 0; i < c->p; i++) sum += qx[i] * qd[m * c->p + i];
    squares += (real)sum * (real)sum;
  }
  real about = (real)x.scale * (real)f.scale * sqrt(squares);
  real bound = b.alpha * f.norm + b.beta * f.error + b.rest;
  real off = fabs(about - size_exact(at, atoms, c->d, c->p));
  return off == 0 ? 0 : off / bound;
}

/* The bound (C.4) holds for every kind of finite data.  Prints the largest part of it that errors
 * use. */
static void check_bound(void)
{
  claim_begin("errors of scores stay within the bound of (C.4), on every finite kind of data");
  for (int kind = 0; kind < KINDS; kind++) {
    struct problem c = {.n = 40,
                        .p = 1 + 37 * kind,
                        .d = 1 + kind % 3,
                        .top_k = 1,
                        .k = 60,
                        .kind = (enum kind)kind};
    if (!is_finite_kind((enum kind)kind)) continue;
    int good = problem_make(&c) == OK;
    real max = 0;
    for (idx i = 0; i < c.n; i++)
      for (idx a = 0; a < c.k; a++)
        for (int levels = 63; levels <= 127; levels += 64) {
          real part = part_of_bound(&c, i, a, levels);
          max = part > max || isnan(part) ? part : max;
        }
    ok(good && max <= 1, "kind %d: at most %.2f of the bound", kind, max);
    arena_free(&c.arena);
  }
  claim_end();
}

/* Rows and atoms for which errors use much of the bound: first, the errors of the row have the
 * direction of the atom; second, products underflow. */
static void check_worst(void)
{
  enum { P = 256 };
  float row[P], atom[P];
  struct problem c = {.n = 1, .p = P, .d = 1, .k = 1, .rows = row, .atoms = atom};
  for (int i = 0; i < P; i++) {
    row[i] = i ? (float)(1 + i % 3) + 0.499f : 127;
    atom[i] = i > 0;
  }
  real part = part_of_bound(&c, 0, 0, 127);
  ok(part > 0.95 && part <= 1, "planted errors use %.2f of the bound", part);
  for (int i = 0; i < P; i++) { /* products are half the smallest number: a chain loses them all */
    row[i] = i ? 0x1p-94f : 127 * 0x1p-94f;
    atom[i] = i < P - 1 ? 0x1p-56f : 127 * 0x1p-56f;
  }
  part = part_of_bound(&c, 0, 0, 127);
  ok(part > 0.45 && part <= 1, "planted underflow uses %.2f of the bound", part);
}

/* (C.5) If all numbers are integers, only the rounding of the gate itself is left. */
static void check_gates(void)
{
  float row = 127, frame[8];
  struct problem c = {.n = 1, .p = 1, .d = 8, .k = 1, .rows = &row, .atoms = frame};
  real max = 0;
  for (uint64_t turn = 0; turn < 20000; turn++) {
    for (uint64_t m = 0; m < 8; m++) frame[m] = (float)random_below(9, turn, m, 128);
    frame[turn % 8] = 127;
    real part = part_of_bound(&c, 0, 0, 127);
    max = part > max ? part : max;
  }
  ok(max > 0.1 && max <= 1, "gates of integers use %.2f of the bound", max);
}

/* The integers of a variant are those of the reference, and its norms differ by a relative 1e-12 at
 * most. */
static void check_quantize(const struct screen_loops *loops)
{
  static const idx ps[] = {1, 7, 8, 9, 63, 64, 200};
  int same = 1, near = 1;
  for (int i = 0; i < LENGTH(ps); i++)
    for (int kind = 0; kind < KINDS; kind++) {
      struct problem c = {.n = 9, .p = ps[i], .d = 1, .top_k = 1, .kind = (enum kind)kind};
      if (!is_finite_kind((enum kind)kind) || problem_make(&c)) continue;
      for (idx row = 0; row < c.n; row++) {
        int8_t q[208], expected[208];
        struct quantized z, wanted;
        const float *x = c.rows + (gidx)row * c.p;
        int32_t sum = loops->quantize(x, c.p, q, &z);
        screen_quantize(x, 1, c.p, SCREEN_ROW_LEVELS, expected, &wanted);
        for (idx j = 0; j < c.p; j++) sum -= expected[j];
        same &= sum == 0 && !memcmp(q, expected, (size_t)c.p) && z.scale == wanted.scale;
        near &= fabs(z.norm - wanted.norm) <= 1e-12 * wanted.norm &&
                fabs(z.norm_short - wanted.norm_short) <= 1e-12 * wanted.norm_short &&
                fabs(z.error - wanted.error) <= 1e-12 * wanted.error;
      }
      arena_free(&c.arena);
    }
  ok(same, "%s: integers of rows have the reference's bits", loops->name);
  ok(near, "%s: norms of rows have the reference's bits", loops->name);
}

static void check_paths(const struct how *how)
{
  struct problem c = {.n = 60, .p = 48, .d = 1, .top_k = 4, .k = 3000, .tile = 700};
  c.kind = RANDOM;
  struct screen_counts f = paths(c, how);
  ok(f.rows[SCREEN_CERTIFIED] == 60 && f.candidates >= 240 && f.candidates < 60 * 100 &&
         f.max * 60 >= f.candidates,
     "%s: random rows are certified, %.1f candidates each", how->variant,
     (double)f.candidates / 60);
  c.kind = ZERO;
  f = paths(c, how);
  ok(f.rows[SCREEN_CERTIFIED] == 30 && f.rows[SCREEN_LIST] == 30,
     "%s: rows of zeros have too many candidates", how->variant);
  c.kind = BAD;
  f = paths(c, how);
  ok(f.rows[SCREEN_SCORE] == 60, "%s: atoms that are not finite leave all to the direct path",
     how->variant);
  c.kind = SUBNORMAL;
  f = paths(c, how);
  ok(f.rows[SCREEN_CERTIFIED] + f.rows[SCREEN_LIST] == 60, "%s: subnormal rows", how->variant);
}

static const enum kind broken_by[] = {HEAVY, LAST_BIT, FIXTURE, RANDOM};

/* The bound of the kernels is that of the reference, up to rounding. */
static void check_kernel_bound(void)
{
  real max = 0;
  for (uint64_t turn = 0; turn < 4000; turn++) {
    double draw[7];
    for (uint64_t i = 0; i < 7; i++) draw[i] = fabs(random_normal(3, i, turn));
    idx d = 1 + (idx)turn % 8, p = 1 + (idx)random_below(3, 7, turn, 1 << 16);
    real gamma = turn % 3 ? 1e-4 * draw[5] : 0;
    struct screen_norms row = {draw[0], draw[1], 1e-3 * draw[2], draw[0] * draw[6]};
    struct quantized x = {1, row.norm, row.norm_short, row.error, row.mean};
    struct screen_bound b = screen_bound(&x, d, p, gamma);
    real wanted = b.alpha * draw[3] + b.beta * draw[4] + b.rest;
    real off = fabs(bound_reach(row, draw[3], draw[4], d, p, gamma) / wanted - 1);
    max = off > max ? off : max;
  }
  ok(max < 1e-8, "the bound of the kernels differs from the reference's by %.1e at most", max);
}

static void check_options(void)
{
  static const struct how none = {
      .kind = "cpu", .variant = "baseline", .threads = 1, .filter = "on"};
  ok(!how_present(&none), "a processor without AVX2 has no filter");
}

int main(void)
{
  struct how those[LENGTH(variants)];
  int count = variants_present(those);
  check_options();
  check_bound();
  check_worst();
  check_gates();
  check_kernel_bound();
  if (count == 0) {
    skip("there is no certified filter for this processor");
    return done_testing();
  }
  const struct isa *unit;
  claim_begin("each variant's integers and norms of rows are the reference's");
  for (int i = 0; (unit = isa_present(i)); i++)
    if (unit->screen) check_quantize(unit->screen);
  claim_end();
  int some = is_small() ? 1 : count;
  claim_begin("shapes: the exact route's bits");
  check_shapes(those + count - some, some);
  claim_end();
  claim_begin("data that are hard for the filter: the exact route's bits");
  check_kinds(those + count - some, some);
  claim_end();
  claim_begin("widths: the exact route's bits");
  check_widths(those + count - some, some, 200);
  claim_end();
  for (int v = 0; v < count; v++) {
    claim_begin("%s: rows take the direct path if and only if they must", those[v].variant);
    check_paths(&those[v]);
    claim_end();
    check_without_bound(&those[v], 4, broken_by, LENGTH(broken_by));
  }
  return done_testing();
}
