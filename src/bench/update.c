/* SPDX-License-Identifier: BSD-3-Clause
 * Times the sums of the normal equations and the descent in turn, and prints medians.  Rows are
 * random.  Atoms are drawn by a power law; one more atom is in half of the rows. */
#include "bench/update.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "bench/peer.h"
#include "device/normal.h"

enum { PASSES = 4, MAX_REPEATS = 1000 };

struct bench {
  const struct bench_route_options *o;
  const struct bench_common *common;
  struct device device;
  struct buffer slots, codes, x, gram, target, atoms, diagonal, work;
  double add[MAX_REPEATS], descend[MAX_REPEATS];
};

static int buffers_alloc(struct bench *b)
{
  gidx n = b->o->n_rows, s = b->o->top_s, k = b->o->atoms, p = b->o->columns;
  struct device *dev = &b->device;
  TRY(buffer_alloc(dev, &b->slots, n * s * (gidx)sizeof(idx)));
  TRY(buffer_alloc(dev, &b->codes, n * s * (gidx)sizeof(float)));
  TRY(buffer_alloc(dev, &b->x, n * p * (gidx)sizeof(float)));
  TRY(buffer_alloc_device(dev, &b->gram, k * k * (gidx)sizeof(real)));
  TRY(buffer_alloc_device(dev, &b->target, k * p * (gidx)sizeof(real)));
  TRY(buffer_alloc(dev, &b->atoms, k * p * (gidx)sizeof(real)));
  TRY(buffer_alloc(dev, &b->diagonal, k * (gidx)sizeof(real)));
  gidx work = device_normal_bytes(dev, (idx)n, (idx)s, (idx)k, (idx)p);
  return buffer_alloc_device(dev, &b->work, work);
}

/* Draw an atom other than atom 0.  Atoms with lower numbers are more likely. */
static idx atom_draw(idx k, uint64_t *draw)
{
  real u = (real)random_below(1, 1, (*draw)++, 1u << 30) * 0x1p-30;
  return 1 + (idx)((real)(k - 1) * u * u * u);
}

/* Draw the atoms of a row, all different.  Rows with even numbers have atom 0. */
static void support_draw(idx row, idx s, idx k, uint64_t *draw, idx *last, idx *slots)
{
  for (idx j = 0; j < s; j++) {
    idx atom = j == 0 && row % 2 == 0 ? 0 : atom_draw(k, draw);
    while (last[atom] == row + 1) atom = atom_draw(k, draw);
    last[atom] = row + 1;
    slots[j] = atom;
  }
}

static int problem_fill(struct bench *b)
{
  idx k = b->o->atoms, s = b->o->top_s, *last;
  gidx entries = (gidx)b->o->n_rows * s, values = (gidx)b->o->n_rows * b->o->columns;
  struct arena arena = {0};
  uint64_t draw = 0;
  TRY(arena_alloc(&arena, &last, k, sizeof *last));
  for (idx i = 0; i < b->o->n_rows; i++)
    support_draw(i, s, k, &draw, last, (idx *)b->slots.host + (gidx)i * s);
  arena_free(&arena);
  for (gidx i = 0; i < entries; i++)
    ((float *)b->codes.host)[i] = (float)random_normal(1, 2, (uint64_t)i);
  for (gidx i = 0; i < values; i++)
    ((float *)b->x.host)[i] = (float)random_normal(1, 3, (uint64_t)i & 0xfffff);
  for (gidx i = 0; i < (gidx)k * b->o->columns; i++)
    ((real *)b->atoms.host)[i] = random_normal(1, 4, (uint64_t)i);
  struct buffer *const all[] = {&b->slots, &b->codes, &b->x, &b->atoms};
  for (int i = 0; i < LENGTH(all); i++) TRY(device_put(&b->device, all[i], 0, all[i]->bytes));
  return OK;
}

/* Compute the sums from 0, as each sweep of a fit without --minibatch does, then the descent. */
static int repeat_run(struct bench *b, int turn)
{
  const struct bench_route_options *o = b->o;
  gidx k = o->atoms;
  struct normal_job add = {.n = o->n_rows,
                           .s = o->top_s,
                           .p = o->columns,
                           .k = o->atoms,
                           .slots = &b->slots,
                           .codes = &b->codes,
                           .x = &b->x,
                           .own = {0, o->atoms, NORMAL_BLOCK},
                           .end = o->columns,
                           .gram = &b->gram,
                           .target = &b->target,
                           .work = &b->work};
  struct descend_job descend = {o->atoms,   o->columns, PASSES,       0,       o->atoms, &b->gram,
                                &b->target, &b->atoms,  &b->diagonal, &b->work};
  double begun = log_seconds();
  TRY(device_normal_decay(&b->device, &b->gram, 0, k * k, 0));
  TRY(device_normal_decay(&b->device, &b->target, 0, k * o->columns, 0));
  TRY(device_normal_add(&b->device, &add));
  double added = log_seconds();
  TRY(device_normal_descend(&b->device, &descend));
  b->add[turn] = added - begun;
  b->descend[turn] = log_seconds() - added;
  return OK;
}

static void line_print(const struct bench_common *common, const char *name, double *seconds,
                       double work)
{
  struct json *j = common->json;
  double middle = median(seconds, common->repeats);
  if (j) {
    json_object(j, NULL);
    json_text(j, "name", name);
    json_real(j, "seconds", middle);
    json_real(j, "gfmas", 1e-9 * work / middle);
    json_end(j);
    return;
  }
  printf("%-10s %10.3f %10.1f\n", name, 1e3 * middle, 1e-9 * work / middle);
}

static void head_write(const struct bench *b, struct json *j)
{
  json_long(j, "rows", b->o->n_rows);
  json_long(j, "columns", b->o->columns);
  json_long(j, "atoms", b->o->atoms);
  json_long(j, "top_s", b->o->top_s);
  json_long(j, "passes", PASSES);
  json_text(j, "variant", b->device.variant);
  json_array(j, "lines");
}

static void head_print(const struct bench *b)
{
  const struct bench_route_options *o = b->o;
  printf(
      "%d rows of %d columns, %d of %d atoms a row, %d passes, threads=%d variant=%s, medians of "
      "%d runs\n",
      o->n_rows, o->columns, o->top_s, o->atoms, PASSES, b->common->threads, b->device.variant,
      b->common->repeats);
  printf("%-10s %10s %10s\n", "", "ms", "Gfma/s");
}

static void table_print(struct bench *b)
{
  const struct bench_route_options *o = b->o;
  struct json *j = b->common->json;
  double k = o->atoms, s = o->top_s, p = o->columns;
  if (j)
    head_write(b, j);
  else
    head_print(b);
  line_print(b->common, "sums", b->add, o->n_rows * s * (s + p));
  line_print(b->common, "descent", b->descend, PASSES * k * k * p);
  if (j) json_end(j);
}

int bench_update(const struct bench_route_options *o, const struct bench_common *common)
{
  static struct bench b;
  b = (struct bench){.o = o, .common = common};
  CHECK(o->atoms >= 8 * o->top_s, ERR_USAGE,
        "'--atoms' is %d: supports of %d atoms are drawn from at least 8 times as many; give more",
        o->atoms, o->top_s);
  struct device_options options = bench_device(common, o->columns, 0);
  TRY(device_open(&b.device, &options));
  TRY(buffers_alloc(&b));
  TRY(problem_fill(&b));
  TRY(repeat_run(&b, 0)); /* may compile kernels */
  for (int r = 0; r < common->repeats; r++) TRY(repeat_run(&b, r));
  table_print(&b);
  struct buffer *const all[] = {&b.slots,  &b.codes, &b.x,        &b.gram,
                                &b.target, &b.atoms, &b.diagonal, &b.work};
  for (int i = 0; i < LENGTH(all); i++) buffer_free(&b.device, all[i]);
  device_close(&b.device);
  return OK;
}
