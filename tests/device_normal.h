/* SPDX-License-Identifier: BSD-3-Clause
 * Checks of the normal equations on any device against the references: parts of the Gram matrix and
 * of the columns, as ranks have them; rows in two jobs with a decay between them; the descent; and
 * the energies of residuals.
 *
 * Some codes are 0 or -0, some numbers are subnormal, and one column is 0.  One atom is in every
 * row, and one has only codes of 0.  Sums begin with 0 or -0.  In one more case the descent ends at
 * -0 (signs_answer()). */
#ifndef TESTS_DEVICE_NORMAL_H
#define TESTS_DEVICE_NORMAL_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "device/normal.h"
#include "forms.h"
#include "device_how.h"

enum { NORMAL_PASSES = 3 };

struct normal_shape {
  idx n, s, k, p;
  int parts;     /* number of ranks that share the work */
  idx work_rows; /* rows for which the work space has room; 0: all */
  int signs;     /* 1: the case of signs_answer() */
};

struct normal_problem {
  struct normal_shape z;
  struct arena arena;
  idx *slots;
  float *codes, *x;
  real *gram, *target, *atoms; /* the references' results for all parts */
  real *start;                 /* [k][p] atoms before the descent */
  real *energy;                /* [n] energies of the residuals of rows by `start` */
  unsigned char *forget;
};

/* The problem on a device, as one rank has it. */
struct normal_side {
  struct device *dev;
  struct normal_own own;
  idx begin, end;
  struct buffer slots, codes, x, gram, target, atoms, diagonal, forget, energy, work;
};

static int problem_alloc(struct normal_problem *c)
{
  gidx n = c->z.n, s = c->z.s, k = c->z.k, p = c->z.p;
  TRY(arena_alloc(&c->arena, &c->slots, n * s, sizeof *c->slots));
  TRY(arena_alloc(&c->arena, &c->codes, n * s, sizeof *c->codes));
  TRY(arena_alloc(&c->arena, &c->x, n * p, sizeof *c->x));
  TRY(arena_alloc(&c->arena, &c->gram, k * k, sizeof *c->gram));
  TRY(arena_alloc(&c->arena, &c->target, k * p, sizeof *c->target));
  TRY(arena_alloc(&c->arena, &c->atoms, k * p, sizeof *c->atoms));
  TRY(arena_alloc(&c->arena, &c->start, k * p, sizeof *c->start));
  TRY(arena_alloc(&c->arena, &c->energy, n, sizeof *c->energy));
  return arena_alloc(&c->arena, &c->forget, k, sizeof *c->forget);
}

/* The value with which sum i begins. */
static real zero_of(gidx i)
{
  return i % 3 == 1 ? -0.0 : 0.0;
}

static float number_of(uint64_t kind, gidx i)
{
  float normal = (float)random_normal(1, kind, (uint64_t)i);
  return i % 11 == 3 ? 1e-41f * normal : normal;
}

/* Fill rows, codes and atoms.  Atom k / 2 is in every row.  The last atom has only codes of 0, if
 * there are several atoms. */
static void problem_fill(struct normal_problem *c)
{
  struct normal_shape z = c->z;
  for (idx i = 0; i < z.n; i++) {
    idx *slots = c->slots + (gidx)i * z.s, hot = z.k / 2, has = 0;
    idx first = (idx)random_below(1, 1, (uint64_t)i, (uint64_t)z.k);
    for (idx j = 0; j < z.s; j++) slots[j] = (first + j) % z.k;
    for (idx j = 0; j < z.s; j++) has |= slots[j] == hot;
    if (!has) slots[i % z.s] = hot;
  }
  for (gidx i = 0; i < (gidx)z.n * z.s; i++) {
    uint64_t drawn = random_below(1, 2, (uint64_t)i, 8);
    c->codes[i] = drawn == 0 ? 0.0f : drawn == 1 ? -0.0f : number_of(3, i);
    if (c->slots[i] == z.k - 1 && z.k > 1) c->codes[i] = 0;
  }
  for (gidx i = 0; i < (gidx)z.n * z.p; i++)
    c->x[i] = z.p > 1 && i % z.p == z.p - 1 ? 0 : number_of(4, i);
  for (gidx i = 0; i < (gidx)z.k * z.p; i++) c->start[i] = random_normal(1, 5, (uint64_t)i);
  for (idx a = 0; a < z.k; a++) c->forget[a] = a % 5 == 2;
}

static struct normal_rows rows_of(const struct normal_problem *c, idx first, idx end)
{
  const struct normal_shape *z = &c->z;
  return (struct normal_rows){.n = end - first,
                              .s = z->s,
                              .p = z->p,
                              .atoms = c->slots + (gidx)first * z->s,
                              .codes = c->codes + (gidx)first * z->s,
                              .x = c->x + (gidx)first * z->p};
}

static void problem_answer(struct normal_problem *c)
{
  const struct normal_shape *z = &c->z;
  gidx k = z->k, p = z->p;
  struct normal_rows one = rows_of(c, 0, z->n / 3), two = rows_of(c, z->n / 3, z->n);
  for (gidx i = 0; i < k * k; i++) c->gram[i] = zero_of(i);
  for (gidx i = 0; i < k * p; i++) c->target[i] = zero_of(i);
  normal_add(&one, z->k, c->gram, c->target);
  normal_decay(0.7, k * k, c->gram);
  normal_decay(0.7, k * p, c->target);
  normal_add(&two, z->k, c->gram, c->target);
  memcpy(c->atoms, c->start, (size_t)(k * p) * sizeof *c->atoms);
  struct normal_rows all = rows_of(c, 0, z->n);
  for (idx i = 0; i < z->n; i++) c->energy[i] = 0;
  normal_energies(&all, c->start, 0, z->p, c->energy);
  for (int i = 0; i < NORMAL_PASSES; i++) normal_descend(c->gram, c->target, z->k, z->p, c->atoms);
}

/* A case without rows.  The Gram matrix is the identity and the target is -0.  The first atom
 * becomes -0, because only -0 is added to its target. */
static void signs_answer(struct normal_problem *c)
{
  const struct normal_shape *z = &c->z;
  for (gidx i = 0; i < (gidx)z->k * z->k; i++) c->gram[i] = i % (z->k + 1) == 0;
  for (gidx i = 0; i < (gidx)z->k * z->p; i++) {
    c->target[i] = -0.0;
    c->atoms[i] = c->start[i] = 1;
  }
  for (int i = 0; i < NORMAL_PASSES; i++) normal_descend(c->gram, c->target, z->k, z->p, c->atoms);
}

/* This rank's columns of row a of a matrix [k][p]. */
static const real *own_of(const struct normal_problem *c, const struct normal_side *on,
                          const real *all, gidx a)
{
  return all + a * c->z.p + on->begin;
}

/* The index in the whole Gram matrix of entry i of the buffer.  The buffer begins with this rank's
 * rows.  For entries after these rows the index is i itself. */
static gidx gram_place(const struct normal_side *on, gidx k, gidx i)
{
  int is_own = i / k < on->own.count;
  return is_own ? normal_own_atom((int)(i / k), on->own.first, on->own.step) * k + i % k : i;
}

/* Allocate the buffers, and copy rows and the first values of sums to the device. */
static int side_bring(const struct normal_problem *c, struct normal_side *on)
{
  const struct normal_shape *z = &c->z;
  struct device *dev = on->dev;
  gidx k = z->k, columns = on->end - on->begin, entries = (gidx)z->n * z->s;
  gidx values = (gidx)sizeof(real);
  idx rows = z->work_rows ? z->work_rows : z->n;
  TRY(buffer_wrap(dev, &on->slots, c->slots, entries * (gidx)sizeof(idx)));
  TRY(buffer_wrap(dev, &on->codes, c->codes, entries * (gidx)sizeof(float)));
  TRY(buffer_wrap(dev, &on->x, c->x, (gidx)z->n * z->p * (gidx)sizeof(float)));
  TRY(buffer_wrap(dev, &on->forget, c->forget, k));
  TRY(buffer_alloc(dev, &on->gram, k * k * values));
  TRY(buffer_alloc(dev, &on->target, k * columns * values));
  TRY(buffer_alloc(dev, &on->atoms, k * columns * values));
  TRY(buffer_alloc(dev, &on->diagonal, k * values));
  TRY(buffer_alloc_device(dev, &on->work,
                          device_normal_bytes(dev, rows, z->s, z->k, (idx)columns)));
  for (gidx i = 0; i < k * k; i++) ((real *)on->gram.host)[i] = zero_of(gram_place(on, k, i));
  for (gidx a = 0; a < k; a++)
    for (gidx j = 0; j < columns; j++)
      ((real *)on->target.host)[a * columns + j] = zero_of(a * z->p + on->begin + j);
  TRY(device_put(dev, &on->slots, 0, entries * (gidx)sizeof(idx)));
  TRY(device_put(dev, &on->codes, 0, entries * (gidx)sizeof(float)));
  TRY(device_put(dev, &on->x, 0, (gidx)z->n * z->p * (gidx)sizeof(float)));
  TRY(device_put(dev, &on->forget, 0, k));
  TRY(device_put(dev, &on->target, 0, k * columns * values));
  return device_put(dev, &on->gram, 0, k * k * values);
}

static void side_leave(struct normal_side *on)
{
  struct buffer *const all[] = {&on->slots, &on->codes,    &on->x,      &on->gram,   &on->target,
                                &on->atoms, &on->diagonal, &on->forget, &on->energy, &on->work};
  for (int i = 0; i < LENGTH(all); i++) buffer_free(on->dev, all[i]);
}

static int rows_add(const struct normal_problem *c, struct normal_side *on, idx first, idx end)
{
  const struct normal_shape *z = &c->z;
  struct normal_job job = {.n = end - first,
                           .s = z->s,
                           .p = z->p,
                           .k = z->k,
                           .row = first,
                           .slots = &on->slots,
                           .codes = &on->codes,
                           .x = &on->x,
                           .own = on->own,
                           .begin = on->begin,
                           .end = on->end,
                           .gram = &on->gram,
                           .target = &on->target,
                           .work = &on->work};
  return device_normal_add(on->dev, &job);
}

/* Are the columns in the buffer this rank's columns of `all` [k][p]? */
static int columns_same(const struct normal_problem *c, const struct normal_side *on,
                        const struct buffer *got, const real *all)
{
  gidx columns = on->end - on->begin;
  for (gidx a = 0; a < c->z.k; a++)
    if (memcmp((const real *)got->host + a * columns, own_of(c, on, all, a),
               (size_t)columns * sizeof *all) != 0)
      return 0;
  return 1;
}

/* The buffer begins with this rank's rows.  Are they those of the reference, and is the rest of the
 * buffer unchanged? */
static int gram_same(const struct normal_problem *c, const struct normal_side *on)
{
  gidx k = c->z.k;
  const real *gram = on->gram.host;
  for (gidx i = 0; i < k * k; i++) {
    real wanted = i / k < on->own.count ? c->gram[gram_place(on, k, i)] : zero_of(i);
    if (memcmp(&gram[i], &wanted, sizeof wanted) != 0) return 0;
  }
  return 1;
}

static int add_check(const struct normal_problem *c, struct normal_side *on)
{
  idx n = c->z.n;
  gidx k = c->z.k, columns = on->end - on->begin;
  TRY(rows_add(c, on, 0, n / 3));
  TRY(device_normal_decay(on->dev, &on->gram, 0, on->own.count * k, 0.7));
  TRY(device_normal_decay(on->dev, &on->target, 0, k * columns, 0.7));
  TRY(rows_add(c, on, n / 3, n));
  TRY(device_get(on->dev, &on->gram, 0, k * k * (gidx)sizeof(real)));
  TRY(device_get(on->dev, &on->target, 0, k * columns * (gidx)sizeof(real)));
  CHECK(gram_same(c, on), ERR_INTERNAL, "the Gram matrix differs");
  CHECK(columns_same(c, on, &on->target, c->target), ERR_INTERNAL, "the target differs");
  return OK;
}

/* Run all passes as one job.  If the number of columns is odd, each pass is several jobs instead,
 * each of two blocks of atoms at most. */
static int atoms_descend(const struct normal_side *on, struct descend_job *job)
{
  const idx k = job->k, part = 2 * NORMAL_BLOCK;
  if (job->columns % 2 == 0) return device_normal_descend(on->dev, job);
  job->passes = 1;
  for (int pass = 0; pass < NORMAL_PASSES; pass++)
    for (idx first = 0; first < k; first += part) {
      const struct buffer rows = {.device = (real *)on->gram.device + (gidx)first * k};
      job->gram = &rows;
      job->first = first;
      job->count = k - first < part ? k - first : part;
      TRY(device_normal_descend(on->dev, job));
    }
  return OK;
}

/* Run the descent on this rank's columns, with the whole Gram matrix. */
static int descend_check(const struct normal_problem *c, struct normal_side *on)
{
  gidx k = c->z.k, columns = on->end - on->begin, values = (gidx)sizeof(real);
  struct descend_job job = {.k = c->z.k,
                            .columns = on->end - on->begin,
                            .passes = NORMAL_PASSES,
                            .count = c->z.k,
                            .gram = &on->gram,
                            .target = &on->target,
                            .atoms = &on->atoms,
                            .diagonal = &on->diagonal,
                            .work = &on->work};
  memcpy(on->gram.host, c->gram, (size_t)(k * k) * sizeof *c->gram);
  for (gidx a = 0; a < k; a++) {
    size_t bytes = (size_t)columns * sizeof *c->start;
    memcpy((real *)on->atoms.host + a * columns, own_of(c, on, c->start, a), bytes);
    memcpy((real *)on->target.host + a * columns, own_of(c, on, c->target, a), bytes);
  }
  TRY(device_put(on->dev, &on->target, 0, k * columns * values));
  TRY(device_put(on->dev, &on->gram, 0, k * k * values));
  TRY(device_put(on->dev, &on->atoms, 0, k * columns * values));
  TRY(atoms_descend(on, &job));
  TRY(device_get(on->dev, &on->atoms, 0, k * columns * values));
  TRY(device_get(on->dev, &on->diagonal, 0, k * values));
  CHECK(columns_same(c, on, &on->atoms, c->atoms), ERR_INTERNAL, "the atoms differ");
  for (gidx a = 0; a < k; a++)
    CHECK(memcmp((real *)on->diagonal.host + a, c->gram + a * (k + 1), sizeof(real)) == 0,
          ERR_INTERNAL, "the diagonal differs");
  return OK;
}

/* Compute the energies of residuals by c->start, some columns at a time.  The sum of a row is
 * continued over all parts of the columns. */
static int energies_check(const struct normal_problem *c, struct normal_side *on)
{
  const struct normal_shape *z = &c->z;
  gidx bytes = z->n * (gidx)sizeof(real), columns = z->p / z->parts + 1;
  TRY(buffer_alloc(on->dev, &on->energy, bytes));
  for (idx i = 0; i < z->n; i++) ((real *)on->energy.host)[i] = 0;
  TRY(device_put(on->dev, &on->energy, 0, bytes));
  for (idx begin = 0; begin < z->p; begin += (idx)columns) {
    gidx count = imin(columns, z->p - begin);
    struct buffer atoms = {0};
    TRY(buffer_alloc(on->dev, &atoms, z->k * count * (gidx)sizeof(real)));
    for (gidx a = 0; a < z->k; a++)
      memcpy((real *)atoms.host + a * count, c->start + a * z->p + begin,
             (size_t)count * sizeof *c->start);
    struct energies_job job = {.n = z->n,
                               .s = z->s,
                               .p = z->p,
                               .slots = &on->slots,
                               .codes = &on->codes,
                               .x = &on->x,
                               .begin = begin,
                               .end = begin + (idx)count,
                               .atoms = &atoms,
                               .energy = &on->energy};
    int status = device_put(on->dev, &atoms, 0, atoms.bytes);
    if (!status) status = device_normal_energies(on->dev, &job);
    buffer_free(on->dev, &atoms);
    TRY(status);
  }
  TRY(device_get(on->dev, &on->energy, 0, bytes));
  CHECK(memcmp(on->energy.host, c->energy, (size_t)bytes) == 0, ERR_INTERNAL,
        "the energies differ");
  return OK;
}

/* Clear some atoms: their rows and columns of the Gram matrix, and their rows of the target, become
 * +0, and nothing else changes. */
static int forget_check(const struct normal_problem *c, struct normal_side *on)
{
  gidx k = c->z.k, columns = on->end - on->begin;
  struct clear_job job = {.k = c->z.k,
                          .columns = on->end - on->begin,
                          .own = {0, c->z.k, NORMAL_BLOCK},
                          .forget = &on->forget,
                          .gram = &on->gram,
                          .target = &on->target};
  const real *gram = on->gram.host, *target = on->target.host;
  TRY(device_normal_clear(on->dev, &job));
  TRY(device_get(on->dev, &on->gram, 0, k * k * (gidx)sizeof(real)));
  TRY(device_get(on->dev, &on->target, 0, k * columns * (gidx)sizeof(real)));
  for (gidx i = 0; i < k * k; i++) {
    real wanted = c->forget[i / k] || c->forget[i % k] ? 0 : c->gram[i];
    CHECK(memcmp(&gram[i], &wanted, sizeof wanted) == 0, ERR_INTERNAL, "what is left differs");
  }
  for (gidx i = 0; i < k * columns; i++) {
    gidx a = i / columns;
    real wanted = c->forget[a] ? 0 : own_of(c, on, c->target, a)[i % columns];
    CHECK(memcmp(&target[i], &wanted, sizeof wanted) == 0, ERR_INTERNAL, "what is left differs");
  }
  return OK;
}

/* The rows of the Gram matrix that part i has.  If the number of parts is odd, these rows are
 * contiguous.  If it is even, they are the blocks i, i + parts, ... of NORMAL_BLOCK rows each. */
static struct normal_own own_rows(const struct normal_shape *z, int i)
{
  struct normal_own own = {(idx)((gidx)z->k * i / z->parts), 0, NORMAL_BLOCK};
  own.count = (idx)((gidx)z->k * (i + 1) / z->parts) - own.first;
  if (z->parts % 2) return own;
  own = (struct normal_own){i * NORMAL_BLOCK, 0, z->parts * NORMAL_BLOCK};
  for (idx a = 0; a < z->k; a++) own.count += a / NORMAL_BLOCK % z->parts == i;
  return own;
}

/* Check part i of the problem, as rank i would have it. */
static int part_check(const struct normal_problem *c, struct device *dev, int i)
{
  const struct normal_shape *z = &c->z;
  struct normal_side on = {.dev = dev,
                           .own = own_rows(z, i),
                           .begin = (idx)((gidx)z->p * i / z->parts),
                           .end = (idx)((gidx)z->p * (i + 1) / z->parts)};
  int status = side_bring(c, &on);
  if (!status && !z->signs) status = add_check(c, &on);
  if (!status) status = descend_check(c, &on);
  if (!status) status = forget_check(c, &on);
  if (!status && !z->signs) status = energies_check(c, &on);
  side_leave(&on);
  return status;
}

static void side_check(const struct normal_problem *c, const struct how *how, int threads)
{
  const struct normal_shape *z = &c->z;
  struct device dev = {0};
  struct device_options options = how_options(how, z->p, 1, 0);
  options.threads = threads;
  int status = device_open(&dev, &options);
  for (int i = 0; i < z->parts && !status; i++) status = part_check(c, &dev, i);
  ok(status == OK, "%s, %d threads: %d rows of %d, %d atoms of %d columns in %d parts: %s",
     how->variant, threads, z->n, z->s, z->k, z->p, z->parts, status_message());
  status_clear();
  device_close(&dev);
}

static void normal_run(struct normal_shape z, const struct how *hows, int count)
{
  struct normal_problem c = {.z = z};
  if (!ok(problem_alloc(&c) == OK, "memory")) return;
  problem_fill(&c);
  (z.signs ? signs_answer : problem_answer)(&c);
  for (gidx i = 0; i < (gidx)z.k * z.p; i++)
    if (!isfinite(c.atoms[i])) {
      ok(0, "%d rows of %d, %d atoms: the reference overflows", z.n, z.s, z.k);
      break;
    }
  for (int v = 0; v < count; v++)
    for (int threads = 1; threads <= hows[v].threads; threads += 2)
      side_check(&c, &hows[v], threads);
  arena_free(&c.arena);
}

static void check_normal(const struct how *hows, int count)
{
  static const struct normal_shape shapes[] = {
      {1, 1, 1, 1, 1, 0, 0},
      {0, 1, 1, 8, 1, 0, 0},
      {3, 1, 2, 1, 3, 0, 0},
      {300, 9, 2 * NORMAL_BLOCK + 7, 77, 3, 0, 0},
      {40, 3, NORMAL_BLOCK, 64, 2, 0, 0},
      {200, 33, NORMAL_BLOCK + 1, 13, 3, 40, 0},
      {7, 5, 2 * NORMAL_BLOCK, 33, 3, 0, 0},
      {300, 1, NORMAL_BLOCK - 1, 7, 1, 0, 0},
      {500, 32, 130, 9, 1, 99, 0},
      {0, 1, NORMAL_BLOCK + 6, 3, 1, 0, 1},
      {60, 3, 401, 9, 2, 0, 0}, /* more atoms than the stages of normal_descend.cu hold */
      /* Large shapes, left out if is_small(): */
      {5000, 32, NORMAL_BLOCK, 8, 1, 0, 0},
      {5000, 100, 130, 9, 1, 1000, 0},
      {70000, 2, 63, 3, 1, 0, 0},
      {300, 5, 4200, 3, 2, 0, 0},
      {5000, 32, 1000, 384, 1, 0, 0},
  };
  enum { SMALL_SHAPES = 11 };
  int is_less = is_small();
  claim_begin("%s: normal equations and their descent have the reference's bits", hows->kind);
  for (int i = 0; i < (is_less ? SMALL_SHAPES : LENGTH(shapes)); i++)
    normal_run(shapes[i], hows, count);
  claim_end();
}

#endif
