/* SPDX-License-Identifier: BSD-3-Clause
 * Checks of a sweep of atoms' steps on a device against step_reference(), one class of atoms after
 * another.  Atoms have one row or thousands, over many sum blocks, and frames have several vectors.
 * Codes fit the rows or do not, so that some steps are rejected and some are solved again.
 *
 * Kinds of data:
 *   0  rows are made from the atoms; codes are near those that made them
 *   1  rows and codes are independent
 *   2  codes describe the rows exactly: no direction is left
 *   3  as 0, with codes of 0, a row that is not finite, a frame that is not orthonormal, and a
 *      frame of zeros
 *   4  as 1, with rows and codes times 2^-12, so that rows and border have different units */
#ifndef TESTS_DEVICE_STEPS_H
#define TESTS_DEVICE_STEPS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "comm/buffers.h"
#include "device/steps.h"
#include "device_how.h"
#include "model/dictionary.h"
#include "model/directions.h"
#include "model/step.h"

static struct comm *sharing; /* all ranks, which share large classes; NULL: one rank does all */

struct steps_shape {
  idx n, s, k, d, p, directions;
  int kind, nonnegative;
  real rho;
  gidx row;
};

struct steps_problem {
  struct steps_shape z;
  struct arena arena;
  idx *slots;
  float *codes, *x;
  real *frames; /* [k][d][p] before the sweep */
  gidx *start, *entry;
  struct classes classes;
  /* The reference's results. */
  real *moved, *residual, *t;
  struct step_result *results;
};

static int steps_alloc_problem(struct steps_problem *c)
{
  gidx n = c->z.n, s = c->z.s, k = c->z.k, p = c->z.p, d = c->z.d;
  TRY(arena_alloc(&c->arena, &c->slots, n * s, sizeof *c->slots));
  TRY(arena_alloc(&c->arena, &c->codes, n * s * d, sizeof *c->codes));
  TRY(arena_alloc(&c->arena, &c->x, n * p, sizeof *c->x));
  TRY(arena_alloc(&c->arena, &c->frames, k * d * p, sizeof *c->frames));
  TRY(arena_alloc(&c->arena, &c->start, k + 2, sizeof *c->start));
  TRY(arena_alloc(&c->arena, &c->entry, n * s, sizeof *c->entry));
  TRY(arena_alloc(&c->arena, &c->moved, k * d * p, sizeof *c->moved));
  TRY(arena_alloc(&c->arena, &c->residual, n * p, sizeof *c->residual));
  TRY(arena_alloc(&c->arena, &c->t, n * s * d, sizeof *c->t));
  return arena_alloc(&c->arena, &c->results, k, sizeof *c->results);
}

/* Draw supports.  Few atoms have most of the rows; the atoms of a row are different. */
static void supports_fill(struct steps_problem *c)
{
  struct steps_shape z = c->z;
  for (idx i = 0; i < z.n; i++)
    for (idx j = 0; j < z.s; j++) {
      idx *slots = c->slots + (gidx)i * z.s, atom;
      real u = (real)random_below(7, 1, (uint64_t)i * 64 + (uint64_t)j, 1 << 20) * 0x1p-20;
      atom = (idx)(u * u * u * z.k);
      for (idx l = 0; l < j;) {
        if (slots[l] != atom) {
          l++;
        } else {
          atom = (atom + 1) % z.k;
          l = 0;
        }
      }
      slots[j] = atom;
    }
}

static void entries_list(struct steps_problem *c)
{
  gidx entries = (gidx)c->z.n * c->z.s;
  gidx *next = c->start + 1;
  for (gidx e = 0; e < entries; e++) next[c->slots[e] + 1]++;
  for (idx a = 0; a < c->z.k; a++) next[a + 1] += next[a];
  for (gidx e = 0; e < entries; e++) c->entry[next[c->slots[e]]++] = e;
}

static int classes_make(struct steps_problem *c)
{
  gidx *starts = calloc((size_t)c->z.n + 1, sizeof *starts);
  for (gidx i = 0; i <= c->z.n; i++) starts[i] = i * c->z.s;
  struct support_view view = {c->z.n, c->z.k, starts, c->slots};
  int status = classes_color(&c->classes, &view);
  free(starts);
  return status;
}

static void values_fill(struct steps_problem *c)
{
  struct steps_shape z = c->z;
  gidx frame = (gidx)z.d * z.p, entries = (gidx)z.n * z.s;
  for (gidx i = 0; i < z.k * frame; i++) c->frames[i] = random_normal(7, 2, (uint64_t)i);
  for (idx a = 0; a < z.k; a++) frame_orthonormalize(c->frames + a * frame, z.d, z.p);
  for (gidx i = 0; i < z.k * frame; i++) c->frames[i] = (float)c->frames[i];
  for (gidx e = 0; e < entries * z.d; e++) {
    c->codes[e] = (float)random_normal(7, 3, (uint64_t)e);
    if (z.nonnegative) c->codes[e] = fabsf(c->codes[e]);
  }
  for (idx i = 0; i < z.n; i++)
    for (idx q = 0; q < z.p; q++) {
      real x = z.kind == 1 || z.kind == 4 ? random_normal(7, 4, (uint64_t)((gidx)i * z.p + q)) : 0;
      for (gidx e = (gidx)i * z.s; e < (gidx)(i + 1) * z.s && z.kind != 1 && z.kind != 4; e++)
        for (idx m = 0; m < z.d; m++)
          x = fma(c->frames[c->slots[e] * frame + m * z.p + q], c->codes[e * z.d + m], x);
      c->x[(gidx)i * z.p + q] = (float)x;
    }
  if (z.kind == 0 || z.kind == 3)
    for (gidx e = 0; e < entries * z.d; e++)
      c->codes[e] += 0.3f * (float)random_normal(7, 5, (uint64_t)e);
  if (z.nonnegative)
    for (gidx e = 0; e < entries * z.d; e++) c->codes[e] = fabsf(c->codes[e]);
}

static void values_spoil(struct steps_problem *c)
{
  gidx frame = (gidx)c->z.d * c->z.p;
  for (gidx e = 0; e < (gidx)c->z.n * c->z.s * c->z.d; e += 5) c->codes[e] = 0;
  c->x[(gidx)(c->z.n / 2) * c->z.p] = INFINITY;
  for (gidx i = 0; i < frame; i++) c->frames[i] *= 3;
  if (c->z.k > 3) memset(c->frames + 3 * frame, 0, (size_t)frame * sizeof *c->frames);
}

static void values_shrink(struct steps_problem *c)
{
  for (gidx e = 0; e < (gidx)c->z.n * c->z.s * c->z.d; e++) c->codes[e] *= 0x1p-12f;
  for (gidx i = 0; i < (gidx)c->z.n * c->z.p; i++) c->x[i] *= 0x1p-12f;
}

static void residuals_answer(struct steps_problem *c)
{
  struct steps_shape z = c->z;
  const real *frame[64];
  for (gidx e = 0; e < (gidx)z.n * z.s * z.d; e++) c->t[e] = c->codes[e];
  for (idx i = 0; i < z.n; i++) {
    for (idx j = 0; j < z.s; j++)
      frame[j] = c->moved + (gidx)c->slots[(gidx)i * z.s + j] * z.d * z.p;
    residual_row(c->x + (gidx)i * z.p, frame, c->t + (gidx)i * z.s * z.d, z.s, z.d, z.p,
                 c->residual + (gidx)i * z.p);
  }
}

static int atom_answer(struct steps_problem *c, idx atom)
{
  struct steps_shape z = c->z;
  gidx first = c->start[atom], n = c->start[atom + 1] - first;
  struct arena arena = {0};
  struct step_outcome out;
  gidx *row;
  real **residual, *codes, *frame = c->moved + (gidx)atom * z.d * z.p;
  TRY(arena_alloc(&arena, &row, n, sizeof *row));
  TRY(arena_alloc(&arena, &residual, n, sizeof *residual));
  TRY(arena_alloc(&arena, &codes, n * z.d, sizeof *codes));
  for (gidx i = 0; i < n; i++) {
    gidx entry = c->entry[first + i];
    row[i] = z.row + entry / z.s;
    residual[i] = c->residual + entry / z.s * z.p;
    memcpy(codes + i * z.d, c->t + entry * z.d, (size_t)z.d * sizeof *codes);
  }
  struct atom_view view = {z.d,   z.p,          n, frame, row, (const real *const *)residual, codes,
                           z.rho, z.nonnegative};
  int status = step_reference(&view, z.directions, frame, codes, residual, &out);
  for (gidx i = 0; i < n; i++)
    memcpy(c->t + c->entry[first + i] * z.d, codes + i * z.d, (size_t)z.d * sizeof *codes);
  c->results[atom] = (struct step_result){.ridge = out.arrow.ridge_t,
                                          .pair = out.arrow.pair,
                                          .accepted = out.accepted,
                                          .status = out.arrow.status,
                                          .retries = out.arrow.retries};
  arena_free(&arena);
  return status;
}

static int steps_answer(struct steps_problem *c)
{
  const struct classes *classes = &c->classes;
  size_t frames = (size_t)c->z.k * (size_t)c->z.d * (size_t)c->z.p;
  memcpy(c->moved, c->frames, frames * sizeof *c->moved);
  residuals_answer(c);
  for (gidx i = 0; i < classes->start[classes->count]; i++) TRY(atom_answer(c, classes->atoms[i]));
  return OK;
}

/* Equal bits, or both NaN. */
static int reals_same(const real *got, const real *wanted, gidx count)
{
  for (gidx i = 0; i < count; i++)
    if (memcmp(got + i, wanted + i, sizeof *got) && !(isnan(got[i]) && isnan(wanted[i]))) return 0;
  return 1;
}

static int results_same(const struct steps_problem *c, const struct step_result *got)
{
  for (idx a = 0; a < c->z.k; a++) {
    const struct step_result *g = got + a, *w = c->results + a;
    int failed = w->status != 0;
    if (g->accepted == w->accepted && g->status == w->status && g->retries == w->retries &&
        g->ridge == w->ridge && (failed || (g->pair.m == w->pair.m && g->pair.e == w->pair.e)))
      continue;
    printf("# atom %d: accepted %d %d, status %d %d, retries %d %d, ridge %.17g %.17g, pair %.17g "
           "%lld, "
           "%.17g %lld\n",
           a, g->accepted, w->accepted, g->status, w->status, g->retries, w->retries, g->ridge,
           w->ridge, g->pair.m, (long long)g->pair.e, w->pair.m, (long long)w->pair.e);
    return 0;
  }
  return 1;
}

struct steps_side {
  struct buffer x, slots, codes, work, messages;
  struct device *dev;
  struct steps_peers share;
  idx *counts, shared; /* bytes of each rank's message; number of classes that were shared */
  int has_entry;
  real *frames, *residual;
  struct step_result *results;
  struct arena arena;
};

static struct steps_job steps_job_of(const struct steps_problem *c, struct steps_side *on)
{
  struct steps_shape z = c->z;
  return (struct steps_job){.n = z.n,
                            .s = z.s,
                            .d = z.d,
                            .p = z.p,
                            .k = z.k,
                            .directions = z.directions,
                            .row = z.row,
                            .rho = z.rho,
                            .nonnegative = z.nonnegative,
                            .x = &on->x,
                            .slots = &on->slots,
                            .codes = &on->codes,
                            .start = c->start,
                            .entry = on->has_entry ? NULL : c->entry,
                            .has_entry = on->has_entry,
                            .classes = &c->classes,
                            .frames = on->frames,
                            .results = on->results,
                            .work = &on->work,
                            .share = sharing ? &on->share : NULL};
}

/* The exchange for struct steps_peers, as in refit/resident.c, except that each exchange ends
 * before the next work begins. */
static int steps_exchange(void *self, gidx bytes)
{
  struct steps_side *on = self;
  for (int r = 0; r < sharing->size; r++) on->counts[r] = (idx)bytes;
  on->shared++;
  return comm_allgather_buffer(sharing, on->dev, &on->messages, on->counts, 1);
}

static int steps_peers(struct device *dev, const struct steps_job *job, struct steps_side *on)
{
  on->dev = dev;
  if (!sharing) return OK;
  on->share = (struct steps_peers){sharing->rank, sharing->size, &on->messages, steps_exchange, on};
  TRY(comm_devices_open(sharing, sharing, dev, 1 << 20));
  TRY(arena_alloc(&on->arena, &on->counts, sharing->size, sizeof *on->counts));
  return buffer_alloc(dev, &on->messages, steps_message_bytes(job, sharing->size));
}

static int steps_bring(const struct steps_problem *c, struct device *dev, struct steps_side *on)
{
  struct steps_shape z = c->z;
  gidx entries = (gidx)z.n * z.s, frames = (gidx)z.k * z.d * z.p;
  struct steps_job job = steps_job_of(c, on);
  gidx work = device_steps_bytes(dev, &job);
  CHECK(work > 0, ERR_DEVICE, "the device leaves the shape to other kernels");
  TRY(arena_alloc(&on->arena, &on->frames, frames, sizeof *on->frames));
  TRY(arena_alloc(&on->arena, &on->residual, (gidx)z.n * z.p, sizeof *on->residual));
  TRY(arena_alloc(&on->arena, &on->results, z.k, sizeof *on->results));
  TRY(buffer_wrap(dev, &on->x, c->x, (gidx)z.n * z.p * (gidx)sizeof(float)));
  TRY(buffer_wrap(dev, &on->slots, c->slots, entries * (gidx)sizeof(idx)));
  TRY(buffer_wrap(dev, &on->codes, c->codes, entries * z.d * (gidx)sizeof(float)));
  TRY(buffer_alloc_device(dev, &on->work, work));
  TRY(steps_peers(dev, &job, on));
  memcpy(on->frames, c->frames, (size_t)frames * sizeof *on->frames);
  TRY(device_put(dev, &on->x, 0, (gidx)z.n * z.p * (gidx)sizeof(float)));
  TRY(device_put(dev, &on->slots, 0, entries * (gidx)sizeof(idx)));
  return device_put(dev, &on->codes, 0, entries * z.d * (gidx)sizeof(float));
}

/* set <- the marks of all atoms in the rows of atom a, by a plain walk over these rows.  Marks that
 * are too large for the set are left out. */
static void met_answer(const struct steps_problem *c, idx a, const struct steps_conflicts *look,
                       uint64_t *set)
{
  memset(set, 0, (size_t)look->words * sizeof *set);
  for (gidx e = c->start[a]; e < c->start[a + 1]; e++)
    for (idx j = 0; j < c->z.s; j++) {
      uint32_t mark = look->marks[c->slots[c->entry[e] / c->z.s * c->z.s + j]];
      if (mark < 64 * look->words) set[mark / 64] |= UINT64_C(1) << mark % 64;
    }
}

/* Compare the sets of marks for all atoms, LOT atoms at a time.  Marks are random; some of them are
 * too large for the sets. */
static int looks_compare(const struct steps_problem *c, struct device *dev, struct steps_side *on)
{
  enum { LOT = 150, WORDS = 5 };
  struct steps_job job = steps_job_of(c, on);
  uint64_t sets[LOT][WORDS], wanted[WORDS];
  uint32_t *marks;
  idx atoms[LOT];
  struct arena arena = {0};
  int same = 1;
  TRY(arena_alloc(&arena, &marks, c->z.k, sizeof *marks));
  for (idx first = 0; first < c->z.k; first += LOT) {
    struct steps_conflicts look = {first == 0, (idx)imin(LOT, c->z.k - first), atoms, marks, WORDS,
                                   sets[0]};
    for (idx a = 0; a < c->z.k; a++)
      marks[a] = a % 7 ? (uint32_t)random_below(8, (uint64_t)first, (uint64_t)a, 64 * WORDS + 9)
                       : UINT32_MAX;
    for (idx j = 0; j < look.count; j++) atoms[j] = c->z.k - 1 - first - j;
    TRY(device_steps_conflicts(dev, &job, &look));
    for (idx j = 0; j < look.count; j++) {
      met_answer(c, atoms[j], &look, wanted);
      same &= !memcmp(wanted, sets[j], sizeof wanted);
    }
  }
  arena_free(&arena);
  CHECK(same, ERR_INTERNAL, "what atoms meet differs");
  return OK;
}

/* Let the device list the entries itself, and compare where each atom begins.  If s is even, the
 * jobs that follow use only this list (has_entry). */
static int entries_compare(const struct steps_problem *c, struct device *dev, struct steps_side *on)
{
  struct steps_job job = steps_job_of(c, on);
  struct arena arena = {0};
  gidx *start;
  TRY(arena_alloc(&arena, &start, (gidx)c->z.k + 1, sizeof *start));
  TRY(device_steps_index(dev, &job, start));
  int same = !memcmp(start, c->start, ((size_t)c->z.k + 1) * sizeof *start);
  arena_free(&arena);
  CHECK(same, ERR_INTERNAL, "entries begin elsewhere");
  on->has_entry = c->z.s % 2 == 0;
  return OK;
}

static int steps_compare(const struct steps_problem *c, struct device *dev, struct steps_side *on)
{
  struct steps_shape z = c->z;
  struct steps_job job = steps_job_of(c, on);
  TRY(device_steps(dev, &job));
  TRY(device_steps_residual(dev, &job, on->residual));
  CHECK(results_same(c, on->results), ERR_INTERNAL, "results differ");
  CHECK(reals_same(on->frames, c->moved, (gidx)z.k * z.d * z.p), ERR_INTERNAL, "frames differ");
  CHECK(reals_same(on->residual, c->residual, (gidx)z.n * z.p), ERR_INTERNAL, "residuals differ");
  return OK;
}

static void steps_side_check(const struct steps_problem *c, const struct how *how)
{
  struct steps_shape z = c->z;
  struct device dev = {0};
  struct steps_side on = {0};
  struct device_options options = how_options(how, z.p, z.d, 0);
  idx accepted = 0, retried = 0, failed = 0;
  options.local_rank = sharing ? sharing->local_rank : 0;
  int status = device_open(&dev, &options);
  if (!status) status = steps_bring(c, &dev, &on);
  if (!status) status = entries_compare(c, &dev, &on);
  if (!status) status = looks_compare(c, &dev, &on);
  if (!status) status = steps_compare(c, &dev, &on);
  for (idx a = 0; a < z.k; a++) {
    accepted += c->results[a].accepted;
    retried += c->results[a].retries > 0;
    failed += c->results[a].status != 0;
  }
  ok(status == OK,
     "%d rows of %d, %d atoms of %d x %d, %d directions, kind %d, from row %lld, %d classes, %d "
     "shared; %d accepted, %d solved again, %d failed: %s",
     z.n, z.s, z.k, z.d, z.p, z.directions, z.kind, (long long)z.row, c->classes.count, on.shared,
     accepted, retried, failed, status_message());
  ok(!sharing || on.shared > 0, "classes are shared");
  status_clear();
  struct buffer *const all[] = {&on.x, &on.slots, &on.codes, &on.work, &on.messages};
  for (int i = 0; i < LENGTH(all); i++) buffer_free(&dev, all[i]);
  if (sharing) comm_devices_close(sharing);
  arena_free(&on.arena);
  device_close(&dev);
}

static void steps_run(struct steps_shape z, const struct how *how)
{
  struct steps_problem c = {.z = z};
  if (!ok(steps_alloc_problem(&c) == OK, "memory")) return;
  supports_fill(&c);
  entries_list(&c);
  values_fill(&c);
  if (z.kind == 3) values_spoil(&c);
  if (z.kind == 4) values_shrink(&c);
  if (ok(classes_make(&c) == OK && steps_answer(&c) == OK, "the reference: %s", status_message()))
    steps_side_check(&c, how);
  classes_free(&c.classes);
  arena_free(&c.arena);
}

#endif
