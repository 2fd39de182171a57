/* SPDX-License-Identifier: BSD-3-Clause
 * Checks of a coder on any device against the references of routing, codes, residuals and quality.
 * Two dictionaries are used one after another, for two sets of rows, in rounds.  The nearest other
 * atom of each atom of a dictionary is checked, too.
 *
 * The references run once for all devices. */
#ifndef TESTS_DEVICE_CODER_H
#define TESTS_DEVICE_CODER_H

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "device_how.h"
#include "model/codes.h"
#include "refit/sparse_coder.h"

static struct comm *sharing; /* all ranks, which share the work; NULL: one rank does all work */

enum { TABLES = 2 };

/* The references' results for one dictionary. */
struct coded_answer {
  idx *atoms;
  float *score, *codes;
  struct row_quality *quality;
};

/* A set of rows, and a coder's results for it. */
struct coded_case {
  idx n;
  float *x, *in; /* the rows; what the current round routes: rows, then residuals */
  idx *atoms;
  float *score;
  struct coded_answer want[TABLES];
  struct coded coded;
};

struct coder_case {
  struct sparse_coder_shape shape;
  struct arena arena;
  float *tables[TABLES]; /* [k][d][p] dictionaries */
  struct coded_case sets[2];
  struct entry *near[TABLES]; /* [k] the nearest other atom of each atom, if d = 1 */
  struct entry *list;
  idx *atom_of;
  const float **vector;
  real *exact, *work;
};

static int set_alloc(struct coder_case *t, struct coded_case *s)
{
  const struct sparse_coder_shape *c = &t->shape;
  gidx entries = (gidx)s->n * c->s;
  TRY(arena_alloc(&t->arena, &s->x, (gidx)s->n * c->p, sizeof *s->x));
  TRY(arena_alloc(&t->arena, &s->in, (gidx)s->n * c->p, sizeof *s->in));
  TRY(arena_alloc(&t->arena, &s->atoms, entries, sizeof *s->atoms));
  TRY(arena_alloc(&t->arena, &s->score, entries, sizeof *s->score));
  for (int i = 0; i < TABLES; i++) {
    struct coded_answer *want = &s->want[i];
    TRY(arena_alloc(&t->arena, &want->atoms, entries, sizeof *want->atoms));
    TRY(arena_alloc(&t->arena, &want->score, entries, sizeof *want->score));
    TRY(arena_alloc(&t->arena, &want->codes, entries * c->d, sizeof *want->codes));
    TRY(arena_alloc(&t->arena, &want->quality, s->n, sizeof *want->quality));
  }
  return OK;
}

/* The factor of a row.  Some rows are 0, and some are so small or large that squares of their
 * scores underflow or overflow. */
static float row_unit(gidx row)
{
  return row % 7 == 5 ? 0 : row % 7 == 3 ? 0x1p-90f : row % 7 == 2 ? 0x1p70f : 1;
}

static int case_alloc(struct coder_case *t)
{
  const struct sparse_coder_shape *c = &t->shape;
  gidx frames = (gidx)c->k * c->d * c->p;
  for (int i = 0; i < TABLES; i++) {
    TRY(arena_alloc(&t->arena, &t->tables[i], frames, sizeof *t->tables[i]));
    TRY(arena_alloc(&t->arena, &t->near[i], c->k, sizeof *t->near[i]));
  }
  TRY(arena_alloc(&t->arena, &t->list, c->s, sizeof *t->list));
  TRY(arena_alloc(&t->arena, &t->atom_of, c->k, sizeof *t->atom_of));
  TRY(arena_alloc(&t->arena, &t->vector, (gidx)c->s * c->d, sizeof *t->vector));
  TRY(arena_alloc(&t->arena, &t->exact, (gidx)c->s * c->d, sizeof *t->exact));
  TRY(arena_alloc(&t->arena, &t->work, codes_work(c->s * c->d), sizeof *t->work));
  for (int i = 0; i < 2; i++) TRY(set_alloc(t, &t->sets[i]));
  for (int i = 0; i < TABLES; i++)
    for (gidx j = 0; j < frames; j++)
      t->tables[i][j] = (float)random_normal(31, 1 + (uint64_t)i, (uint64_t)j);
  for (idx a = 0; a < c->k; a++) t->atom_of[a] = a;
  for (int i = 0; i < 2; i++)
    for (gidx j = 0; j < (gidx)t->sets[i].n * c->p; j++)
      t->sets[i].x[j] = row_unit(j / c->p) * (float)random_normal(31, 3 + (uint64_t)i, (uint64_t)j);
  return OK;
}

/* Codes of a row for the first `now` atoms of its support; s->in <- the residual of the row.  After
 * the last round also its quality. */
static void row_answer(struct coder_case *t, struct coded_case *s, int which, real rho, idx row,
                       idx now)
{
  const struct sparse_coder_shape *c = &t->shape;
  const struct coded_answer *want = &s->want[which];
  const float *x = s->x + (gidx)row * c->p;
  idx m = now * c->d;
  for (idx v = 0; v < m; v++)
    t->vector[v] = t->tables[which] +
                   ((gidx)want->atoms[(gidx)row * c->s + v / c->d] * c->d + v % c->d) * c->p;
  if (c->nonnegative)
    codes_nonnegative_reference(x, t->vector, m, c->p, rho, t->exact, t->work);
  else
    codes_reference(x, t->vector, m, c->p, rho, t->exact, t->work);
  residual_reference(x, t->vector, m, c->p, t->exact, s->in + (gidx)row * c->p);
  float *codes = want->codes + (gidx)row * c->s * c->d;
  for (idx v = 0; v < m; v++) codes[v] = (float)t->exact[v];
  if (now == c->s) want->quality[row] = quality_reference(x, t->vector, now, c->d, c->p, codes);
}

static void set_answer(struct coder_case *t, struct coded_case *s, int which, real rho)
{
  const struct sparse_coder_shape *c = &t->shape;
  const struct coded_answer *want = &s->want[which];
  struct bad_score bad = {-1, -1};
  memcpy(s->in, s->x, (size_t)s->n * (size_t)c->p * sizeof *s->x);
  for (idx round = 1; round <= c->rounds; round++) {
    idx have = round_end(c->s, c->rounds, round - 1), now = round_end(c->s, c->rounds, round);
    for (idx i = 0; i < s->n && now > have; i++) {
      idx *atoms = want->atoms + (gidx)i * c->s;
      struct route_reference r = {.n = 1,
                                  .p = c->p,
                                  .d = c->d,
                                  .top_k = now - have,
                                  .count = c->k,
                                  .nonnegative = c->nonnegative,
                                  .rows = s->in + (gidx)i * c->p,
                                  .atoms = t->tables[which],
                                  .atom_of = t->atom_of,
                                  .excluded = {atoms, have, c->s}};
      route_reference(&r, t->list, &bad);
      for (idx j = have; j < now; j++) {
        atoms[j] = t->list[j - have].atom;
        want->score[(gidx)i * c->s + j] =
            entry_score(t->list[j - have], c->d, c->d > 1 ? route_power(r.rows, c->p) : 0);
      }
      row_answer(t, s, which, rho, i, now);
    }
  }
}

/* Find the nearest other atom of each atom of a dictionary by the reference; d = 1. */
static void near_answer(struct coder_case *t, int which)
{
  const struct sparse_coder_shape *c = &t->shape;
  struct bad_score bad = {-1, -1};
  for (idx own = 0; own < c->k && c->k > 1; own++) {
    struct route_reference r = {.n = 1,
                                .p = c->p,
                                .d = 1,
                                .top_k = 1,
                                .count = c->k,
                                .nonnegative = c->nonnegative,
                                .rows = t->tables[which] + (gidx)own * c->p,
                                .atoms = t->tables[which],
                                .atom_of = t->atom_of,
                                .excluded = {&own, 1, 1}};
    route_reference(&r, t->near[which] + own, &bad);
  }
}

/* The second set is coded without penalty. */
static const real set_rho[2] = {0.1, 0};

static void case_answer(struct coder_case *t)
{
  for (int which = 0; which < TABLES; which++) {
    for (int i = 0; i < 2; i++) set_answer(t, &t->sets[i], which, set_rho[i]);
    if (t->shape.d == 1) near_answer(t, which);
  }
}

static int set_equal(const struct coder_case *t, const struct coded_case *s, int which)
{
  size_t entries = (size_t)s->n * (size_t)t->shape.s;
  const struct coded_answer *want = &s->want[which];
  return !memcmp(s->atoms, want->atoms, entries * sizeof *s->atoms) &&
         !memcmp(s->score, want->score, entries * sizeof *s->score) &&
         !memcmp(s->coded.codes.host, want->codes,
                 entries * (size_t)t->shape.d * sizeof *want->codes) &&
         !memcmp(s->coded.quality.host, want->quality, (size_t)s->n * sizeof *want->quality);
}

/* Compare the nearest other atoms of the atoms from `first` on; d = 1. */
static int nearest_check(const struct coder_case *t, struct sparse_coder *w, int which, idx first,
                         int *wrong)
{
  struct arena arena = {0};
  idx *near, count = t->shape.k - first;
  float *score;
  TRY(arena_alloc(&arena, &near, count, sizeof *near));
  TRY(arena_alloc(&arena, &score, count, sizeof *score));
  TRY(sparse_coder_nearest(w, first, count, near, score));
  for (idx i = 0; i < count; i++) {
    struct entry want = t->near[which][first + i];
    float wanted = t->shape.k > 1 ? entry_score(want, 1, 0) : 0;
    if (near[i] != (t->shape.k > 1 ? want.atom : -1) ||
        (t->shape.k > 1 && memcmp(&score[i], &wanted, sizeof wanted)))
      ++*wrong;
  }
  arena_free(&arena);
  return OK;
}

/* Does a dry device count the memory that was allocated for both sets and for the dictionary? */
static int plan_check(const struct coder_case *t, const struct sparse_coder *w, int *wrong)
{
  const struct sparse_coder_shape *c = &t->shape;
  gidx table = (gidx)c->k * c->d * c->p * (gidx)sizeof(float);
  struct device dry;
  TRY(sparse_coder_device_dry(c, t->sets[0].n, t->sets[1].n, &dry));
  *wrong += dry.planned_device != w->device.planned_device + table;
  return OK;
}

/* Code both sets with the first dictionary, with the second, and with the first again. */
static int case_run(struct coder_case *t, struct sparse_coder *w, int *wrong)
{
  TRY(sparse_coder_open(w, &t->shape));
  if (sharing) TRY(sparse_coder_join(w, sharing));
  for (int i = 0; i < 2; i++) {
    struct coded_case *s = &t->sets[i];
    TRY(coded_open(w, &s->coded, s->n, 100, s->x, s->atoms, s->score));
  }
  TRY(plan_check(t, w, wrong));
  for (int turn = 0; turn < 3; turn++) {
    int which = turn % TABLES;
    TRY(sparse_coder_put(w, t->tables[which]));
    for (int i = 0; i < 2; i++) {
      struct coded_case *s = &t->sets[i];
      TRY(sparse_coder_run(w, &s->coded, 0, s->n / 3, set_rho[i]));
      TRY(sparse_coder_run(w, &s->coded, s->n / 3, s->n - s->n / 3, set_rho[i]));
      TRY(coded_get(w, &s->coded, CODED_ALL));
      *wrong += !set_equal(t, s, which);
    }
    if (t->shape.d == 1) TRY(nearest_check(t, w, which, turn == 2 ? t->shape.k / 3 : 0, wrong));
  }
  return OK;
}

static void how_check(struct coder_case *t, const struct how *how)
{
  struct sparse_coder_shape *c = &t->shape;
  struct sparse_coder w = {0};
  int wrong = 0;
  c->kind = how->kind;
  c->variant = how->variant;
  c->filter = how->filter;
  c->threads = how->threads;
  c->rows = t->sets[0].n > t->sets[1].n ? t->sets[0].n : t->sets[1].n;
  c->local_rank = sharing ? sharing->local_rank : 0;
  int status = case_run(t, &w, &wrong);
  ok(!status && !wrong, "%s %s filter %s, k=%d d=%d p=%d s=%d, %d rounds, %s: %d differ, %s",
     how->kind, how->variant, how->filter, c->k, c->d, c->p, c->s, c->rounds,
     c->nonnegative ? "nonnegative" : "signed", wrong, status_message());
  for (int i = 0; i < 2; i++) coded_close(&w, &t->sets[i].coded);
  sparse_coder_leave(&w);
  sparse_coder_close(&w);
  status_clear();
}

static void check_coder(const struct how *hows, int count, struct sparse_coder_shape shape, idx n,
                        idx more)
{
  struct coder_case t = {.shape = shape, .sets = {{.n = n}, {.n = more}}};
  if (ok(case_alloc(&t) == OK, "memory: %s", status_message())) {
    case_answer(&t);
    for (int i = 0; i < count; i++) how_check(&t, &hows[i]);
  }
  arena_free(&t.arena);
}

/* Shapes with one piece of rows and several, one round and several, one atom, and a set without
 * rows. */
__attribute__((unused)) static void check_coders(const struct how *hows, int count)
{
  idx many = is_small() ? 40 : 1500, atoms = is_small() ? 600 : 2100;
  for (int nonnegative = 0; nonnegative < 2; nonnegative++) {
    const struct sparse_coder_shape shapes[] = {
        {.k = 300, .d = 1, .p = 20, .s = 8, .rounds = 3, .nonnegative = nonnegative},
        {.k = 70, .d = 1, .p = 17, .s = 40, .rounds = 5, .nonnegative = nonnegative},
        {.k = atoms, .d = 1, .p = 130, .s = 4, .rounds = 4, .nonnegative = nonnegative},
        {.k = 5, .d = 1, .p = 3, .s = 1, .rounds = 1, .nonnegative = nonnegative},
        {.k = 1, .d = 1, .p = 3, .s = 1, .rounds = 1, .nonnegative = nonnegative},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
      check_coder(hows, count, shapes[i], i ? 61 : many, i == 3 ? 0 : 33);
  }
  check_coder(hows, count,
              (struct sparse_coder_shape){.k = 90, .d = 2, .p = 24, .s = 6, .rounds = 2}, 61, 40);
}

#endif
