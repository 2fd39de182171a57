/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: normal equations and their descent have the bits of the reference, for any cut into parts
 * of the Gram matrix and columns of the target, widths that are no multiple of a vector, rows that
 * are added in pieces, codes of 0, atoms without codes, and every variant. */
#include "device/normal.h"

#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "tap.h"
#include "variants.h"

enum { MAX_K = 2 * NORMAL_BLOCK + 7, MAX_P = 77, MAX_N = 300, MAX_S = 9, PARTS = 3 };

static idx slots[MAX_N * MAX_S], start[MAX_K + 1], entry[MAX_N * MAX_S];
static float codes[MAX_N * MAX_S], x[MAX_N * MAX_P];
static real gram[MAX_K * MAX_K], target[MAX_K * MAX_P], atoms[MAX_K * MAX_P];
static real got_gram[MAX_K * MAX_K], part[MAX_K * MAX_P], moved[MAX_K * MAX_P];
static real work[NORMAL_BLOCK * MAX_P];

struct shape {
  idx n, s, k, p;
};

/* Supports of neighbouring atoms; a code in eight is 0, and the last atom has none. */
static void fill(struct shape z)
{
  for (idx i = 0; i < z.n * z.s; i++) {
    idx row = i / z.s, first = (idx)random_below(1, 1, (uint64_t)row, (uint64_t)z.k);
    slots[i] = (first + i % z.s) % z.k;
    codes[i] = random_below(1, 2, (uint64_t)i, 8) && slots[i] < z.k - 1
                   ? (float)random_normal(1, 3, (uint64_t)i)
                   : 0;
  }
  for (idx i = 0; i < z.n * z.p; i++) x[i] = (float)random_normal(1, 4, (uint64_t)i);
  for (idx i = 0; i < z.k * z.p; i++) atoms[i] = random_normal(1, 5, (uint64_t)i);
}

/* Rows first .. end - 1. */
static struct normal_rows rows_of(struct shape z, idx first, idx end)
{
  return (struct normal_rows){
      end - first,          z.s, z.p, slots + (gidx)first * z.s, codes + (gidx)first * z.s,
      x + (gidx)first * z.p};
}

/* Columns begin .. end - 1 of a matrix [k][p]. */
static void columns_take(const real *from, struct shape z, idx begin, idx end, real *to)
{
  for (idx a = 0; a < z.k; a++)
    memcpy(to + (gidx)a * (end - begin), from + (gidx)a * z.p + begin,
           (size_t)(end - begin) * sizeof *to);
}

static int same(const real *a, const real *b, gidx count)
{
  return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

/* Part i of PARTS, as a rank would have it, in two pieces of rows. */
static int part_check(struct device *dev, struct dense *d, struct shape z, int i)
{
  idx first = z.k * i / PARTS, count = z.k * (i + 1) / PARTS - first;
  idx begin = z.p * i / PARTS, end = z.p * (i + 1) / PARTS, columns = end - begin;
  struct normal_job job = {{0},  z.k,   first, count, begin, end, got_gram + (gidx)first * z.k,
                           part, start, entry};
  memset(job.gram, 0, (size_t)count * (size_t)z.k * sizeof *job.gram);
  memset(part, 0, sizeof part);
  job.rows = rows_of(z, 0, z.n / 3);
  int good = device_normal_add(dev, &job) == OK;
  job.rows = rows_of(z, z.n / 3, z.n);
  good &= device_normal_add(dev, &job) == OK;
  columns_take(target, z, begin, end, moved);
  good &= same(job.gram, gram + (gidx)first * z.k, (gidx)count * z.k);
  good &= same(part, moved, (gidx)z.k * columns);
  columns_take(atoms, z, begin, end, moved);
  good &= device_normal_descend(d, gram, part, z.k, columns, moved, work) == OK;
  return good;
}

static int shape_check(struct device *dev, struct shape z)
{
  static real wanted[MAX_K * MAX_P], piece[MAX_K * MAX_P];
  struct normal_rows all;
  struct dense d;
  fill(z);
  all = rows_of(z, 0, z.n);
  memset(gram, 0, sizeof gram);
  memset(target, 0, sizeof target);
  normal_add(&all, z.k, gram, target);
  memcpy(wanted, atoms, sizeof atoms);
  normal_descend(gram, target, z.k, z.p, wanted);
  int good = dense_open(&d, dev, DENSE_MIN_PANEL, (idx)imax(z.p, NORMAL_BLOCK)) == OK;
  for (int i = 0; good && i < PARTS; i++) {
    idx begin = z.p * i / PARTS, end = z.p * (i + 1) / PARTS;
    good = part_check(dev, &d, z, i);
    columns_take(wanted, z, begin, end, piece);
    good &= same(moved, piece, (gidx)z.k * (end - begin));
  }
  dense_close(&d);
  return good;
}

static void variant_check(const char *variant)
{
  static const struct shape shapes[] = {{1, 1, 2, 1},
                                        {300, 9, MAX_K, MAX_P},
                                        {40, 3, NORMAL_BLOCK, 64},
                                        {200, 2, NORMAL_BLOCK + 1, 13},
                                        {7, 5, 2 * NORMAL_BLOCK, 33}};
  claim_begin("%s: normal equations and their descent have the reference's bits", variant);
  for (int i = 0; i < 2 * LENGTH(shapes); i++) {
    struct shape z = shapes[i / 2];
    struct device dev = {0};
    struct device_options o = {.p = z.p, .d = 1, .threads = 1 + 2 * (i % 2), .variant = variant};
    if (device_open(&dev, &o) == ERR_DEVICE) {
      skip("this processor lacks %s", variant);
      status_clear();
      break;
    }
    ok(shape_check(&dev, z), "%d rows of %d, %d atoms of %d columns", z.n, z.s, z.k, z.p);
    device_close(&dev);
  }
  claim_end();
}

int main(void)
{
  for (int v = 0; v < LOOP_VARIANTS; v++) variant_check(loop_variants[v]);
  return done_testing();
}
