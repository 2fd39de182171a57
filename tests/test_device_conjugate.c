/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: conjugate gradients without a Gram matrix (N.65) have the bits of the reference, for any
 * division into columns, any number of threads and every variant.  There are several sum blocks of
 * rows and of atoms, codes of 0, atoms without codes, and atoms that earlier rows used.  Without
 * earlier rows, many steps reach the least squares solution. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "device/conjugate.h"
#include "device_how.h"
#include "model/conjugate.h"
#include "variants.h"

struct shape {
  idx n, s, k, p, steps;
  int parts; /* number of ranks that share the columns */
  int held;  /* 1: earlier rows count */
};

struct problem {
  struct shape z;
  struct arena arena;
  idx *atoms;
  float *codes, *x, *piece;
  real *held, *weight, *before, *wanted, *got;
};

static float number_of(uint64_t kind, gidx i)
{
  float normal = (float)random_normal(1, kind, (uint64_t)i);
  return i % 11 == 3 ? 1e-41f * normal : normal;
}

static int problem_alloc(struct problem *c)
{
  gidx n = c->z.n, s = c->z.s, k = c->z.k, p = c->z.p;
  TRY(arena_alloc(&c->arena, &c->atoms, n * s, sizeof *c->atoms));
  TRY(arena_alloc(&c->arena, &c->codes, n * s, sizeof *c->codes));
  TRY(arena_alloc(&c->arena, &c->x, n * p, sizeof *c->x));
  TRY(arena_alloc(&c->arena, &c->piece, n * p, sizeof *c->piece));
  TRY(arena_alloc(&c->arena, &c->held, k, sizeof *c->held));
  TRY(arena_alloc(&c->arena, &c->weight, k, sizeof *c->weight));
  TRY(arena_alloc(&c->arena, &c->before, k * p, sizeof *c->before));
  TRY(arena_alloc(&c->arena, &c->wanted, k * p, sizeof *c->wanted));
  return arena_alloc(&c->arena, &c->got, k * p, sizeof *c->got);
}

/* Fill the problem.  The last atom has only codes of 0.  If z.held is set, earlier rows used every
 * other atom. */
static void problem_fill(struct problem *c)
{
  const struct shape z = c->z;
  for (gidx i = 0; i < z.n; i++) {
    idx first = (idx)random_below(1, 1, (uint64_t)i, (uint64_t)z.k);
    for (idx j = 0; j < z.s; j++) c->atoms[i * z.s + j] = (first + j * 7) % z.k;
  }
  for (gidx i = 0; i < (gidx)z.n * z.s; i++) {
    uint64_t drawn = random_below(1, 2, (uint64_t)i, 8);
    c->codes[i] = drawn == 0 ? 0.0f : drawn == 1 ? -0.0f : number_of(3, i);
    if (c->atoms[i] == z.k - 1) c->codes[i] = 0;
  }
  for (gidx i = 0; i < (gidx)z.n * z.p; i++)
    c->x[i] = z.p > 1 && i % z.p == z.p - 1 ? 0 : number_of(4, i);
  for (gidx i = 0; i < (gidx)z.k * z.p; i++) c->before[i] = random_normal(1, 5, (uint64_t)i);
  for (idx a = 0; a < z.k; a++) c->held[a] = c->weight[a] = z.held && a % 2 ? 0.3 + a % 7 : 0;
}

/* The result of the plain loops. */
static int problem_answer(struct problem *c)
{
  const struct shape *z = &c->z;
  const struct normal_rows rows = {z->n, z->s, z->p, c->atoms, c->codes, c->x};
  conjugate_weigh(&rows, c->weight);
  memcpy(c->wanted, c->before, (size_t)z->k * (size_t)z->p * sizeof *c->wanted);
  return conjugate_descend(&rows, z->k, c->held, c->weight, z->steps, c->wanted);
}

/* Compute columns begin .. end - 1, as a rank does.  The rows have only these columns. */
static int part_run(struct problem *c, struct device *dev, int threads, idx begin, idx end)
{
  const struct shape *z = &c->z;
  const gidx columns = end - begin;
  real *after = malloc((size_t)(z->k * columns + 1) * sizeof *after);
  void *work = malloc((size_t)cpu_conjugate_bytes(threads, z->n, z->k, (idx)columns) + 1);
  for (gidx i = 0; i < z->n; i++)
    memcpy(c->piece + i * columns, c->x + i * z->p + begin, (size_t)columns * sizeof *c->x);
  const struct conjugate_job job = {.n = z->n,
                                    .s = z->s,
                                    .k = z->k,
                                    .columns = (idx)columns,
                                    .steps = z->steps,
                                    .atoms = c->atoms,
                                    .codes = c->codes,
                                    .x = c->piece,
                                    .x_stride = columns,
                                    .before = c->before + begin,
                                    .before_stride = z->p,
                                    .held = c->held,
                                    .weight = c->weight,
                                    .after = after,
                                    .work = work};
  int status = after && work ? cpu_conjugate(dev, &job) : ERR_MEMORY;
  for (gidx a = 0; a < z->k && !status; a++)
    memcpy(c->got + a * z->p + begin, after + a * columns, (size_t)columns * sizeof *after);
  free(after);
  free(work);
  return status;
}

static void side_check(struct problem *c, const struct how *how, int threads)
{
  const struct shape *z = &c->z;
  struct device dev = {0};
  struct device_options options = how_options(how, z->p, 1, 0);
  const size_t bytes = (size_t)z->k * (size_t)z->p * sizeof *c->got;
  options.threads = threads;
  memset(c->got, 0xFF, bytes);
  int status = device_open(&dev, &options);
  for (int i = 0; i < z->parts && !status; i++)
    status = part_run(c, &dev, threads, (idx)((gidx)z->p * i / z->parts),
                      (idx)((gidx)z->p * (i + 1) / z->parts));
  ok(!status && memcmp(c->got, c->wanted, bytes) == 0,
     "%s, %d threads: %d rows of %d, %d atoms of %d columns in %d parts, %d steps", how->variant,
     threads, z->n, z->s, z->k, z->p, z->parts, z->steps);
  status_clear();
  device_close(&dev);
}

/* The objective: the squared residuals of the rows by these atoms, plus the changes of the atoms,
 * squared and weighted by their use in earlier rows.  Steps make it smaller. */
static real objective(const struct problem *c, const real *atoms)
{
  const struct shape *z = &c->z;
  const struct normal_rows rows = {z->n, z->s, z->p, c->atoms, c->codes, c->x};
  real sum = 0, *energy = calloc((size_t)z->n + 1, sizeof *energy);
  normal_energies(&rows, atoms, 0, z->p, energy);
  for (idx i = 0; i < z->n; i++) sum += energy[i];
  for (gidx i = 0; i < (gidx)z->k * z->p; i++) {
    real moved = atoms[i] - c->before[i];
    sum += c->held[i / z->p] * moved * moved;
  }
  free(energy);
  return sum;
}

static void shape_run(struct shape z, const struct how *hows, int count)
{
  struct problem c = {.z = z};
  if (!ok(problem_alloc(&c) == OK, "memory")) return;
  problem_fill(&c);
  ok(problem_answer(&c) == OK, "the reference");
  real before = objective(&c, c.before), after = objective(&c, c.wanted);
  ok(z.steps == 0 || z.n < 2 ? after == before : after < before,
     "%d rows, %d steps: %.6g is left of %.6g", z.n, z.steps, after, before);
  for (int v = 0; v < count; v++)
    for (int threads = 1; threads <= hows[v].threads; threads += 2)
      side_check(&c, &hows[v], threads);
  arena_free(&c.arena);
}

/* After more steps than atoms, a change of any single number of the atoms makes the objective
 * larger. */
static void settled_check(void)
{
  struct problem c = {.z = {400, 3, 12, 5, 40, 1, 0}};
  const struct shape *z = &c.z;
  if (!ok(problem_alloc(&c) == OK, "memory")) return;
  problem_fill(&c);
  ok(problem_answer(&c) == OK, "the reference");
  real least = objective(&c, c.wanted);
  int worse = 1;
  for (gidx i = 0; i < (gidx)(z->k - 1) * z->p; i++)
    for (real step = -1e-3; step < 2e-3; step += 2e-3) {
      real was = c.wanted[i];
      c.wanted[i] += step;
      worse &= objective(&c, c.wanted) > least;
      c.wanted[i] = was;
    }
  ok(worse, "at the least squares solution every change leaves more");
  arena_free(&c.arena);
}

int main(void)
{
  static const struct shape shapes[] = {
      {1, 1, 2, 1, 4, 1, 0},
      {0, 1, 1, 8, 4, 1, 1},
      {3, 1, 2, 1, 0, 3, 1},
      {300, 9, 131, 77, 4, 3, 1},
      {40, 3, 64, 64, 4, 2, 0},
      {200, 33, 300, 13, 7, 3, 1},
      {300, 1, 63, 7, 2, 1, 0},
      /* Large shapes, left out if is_small(): */
      {9000, 8, 130, 9, 4, 2, 1},
      {5000, 32, 64, 72, 3, 1, 0},
      {300, 5, 8200, 11, 3, 2, 1},
      {13000, 2, 63, 3, 4, 1, 1},
  };
  enum { SMALL_SHAPES = 7 };
  struct how hows[LOOP_VARIANTS];
  int count = 0;
  for (int v = 0; v < LOOP_VARIANTS; v++) {
    struct how how = {.kind = "cpu", .variant = loop_variants[v], .threads = 3};
    if (how_present(&how)) hows[count++] = how;
  }
  claim_begin("cpu: conjugate gradients have the reference's bits");
  for (int i = 0; i < (is_small() ? SMALL_SHAPES : LENGTH(shapes)); i++)
    shape_run(shapes[i], hows, count);
  claim_end();
  claim_begin("many steps reach the least squares solution");
  settled_check();
  claim_end();
  return done_testing();
}
