/* SPDX-License-Identifier: BSD-3-Clause
 * Checks of training on any device against plain loops with dense matrices, with dead atoms and
 * batches of several chunks.  Training is also stopped and continued. */
#ifndef TESTS_TRAIN_CASES_H
#define TESTS_TRAIN_CASES_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/sums.h"
#include "device_how.h"
#include "model/codes.h"
#include "model/shuffle.h"
#include "tap.h"
#include "train/validation.h"
#include "train/train.h"

struct made {
  gidx n;
  idx p;
  gidx read; /* rows that were read */
};

static gidx rows_period; /* rows repeat after this many, so that scores are equal; 0: they do not */

static float value_of(gidx row, idx column, idx p)
{
  if (rows_period) row %= rows_period;
  return 30 * (float)random_normal(3, 1, (uint64_t)(row * p + column)) * (column % 3 ? 0.2f : 1);
}

static int rows_make(void *self, gidx first, idx count, float *out)
{
  struct made *m = self;
  m->read += count;
  for (gidx i = 0; i < count; i++)
    for (idx c = 0; c < m->p; c++) out[i * m->p + c] = value_of(first + i, c, m->p);
  return OK;
}

/* A copy of what the sink of a job got last, and how the job is to be stopped. */
struct kept {
  struct train_state state;
  struct train_point point;
  struct train_line lines[64];
  real mean[32];
  struct arena arena;
  gidx stop_at; /* step in which the job is asked to stop; 0: before the first; -1: never */
  gidx looks;   /* polls so far */
  int asks;     /* 1: the request comes on this rank */
  int saves;    /* 1: every poll requests a state */
  uint64_t told;
  gidx k, p;
  gidx states; /* states so far with which training could continue */
};

static int point_keep(void *self, const struct train_point *point, enum train_reason why)
{
  struct kept *k = self;
  k->states += why == TRAIN_STATE;
  if (!k->state.idle) TRY(train_state_alloc(&k->state, &k->arena, (idx)k->k, (idx)k->p));
  for (int i = 0; i < TRAIN_ARRAYS; i++) {
    size_t bytes = (size_t)train_numbers((idx)k->k, (idx)k->p, i) * sizeof(float);
    memcpy(k->state.w[i], point->state->w[i], bytes);
    memcpy(k->state.m[i], point->state->m[i], bytes);
    memcpy(k->state.v[i], point->state->v[i], bytes);
  }
  memcpy(k->state.idle, point->state->idle, (size_t)k->k * sizeof(gidx));
  for (int i = 0; i < LENGTH(k->state.offset); i++)
    memcpy(k->state.offset[i], point->state->offset[i], (size_t)k->p * sizeof(float));
  k->state.threshold = point->state->threshold;
  k->state.error = point->state->error;
  k->state.size = point->state->size;
  memcpy(k->lines, point->lines, (size_t)point->count * sizeof *point->lines);
  k->point = *point;
  if (point->mean) memcpy(k->mean, point->mean, (size_t)k->p * sizeof *k->mean);
  k->point.mean = point->mean ? k->mean : NULL;
  k->point.lines = k->lines;
  k->point.state = &k->state;
  return OK;
}

/* The poll for stops.  It is called before the first step and in each step. */
static uint64_t stop_asked(void *self)
{
  struct kept *k = self;
  uint64_t asked = k->stop_at >= 0 && k->asks && k->looks++ == k->stop_at;
  return asked | (k->saves ? STOPS_SAVE : 0);
}

static void stop_told(void *self, uint64_t asked)
{
  struct kept *k = self;
  k->told = asked;
}

static const char *train_device; /* "cpu" or "cuda" */

static struct train_task task_of(const struct row_source *rows, idx k, idx s, idx batch, gidx steps)
{
  return (struct train_task){
      .rows = rows,
      .sizes = {.k = k, .s = s, .aux = 7, .aux_weight = 0.03125, .dead_rows = 2 * batch},
      .seed = 5,
      .steps = steps,
      .every = 7,
      .batch = batch,
      .rate = {.most = 0.01, .warm_up = 0.1, .decay = 0.5},
      .threads = 1,
      .variant = "auto",
      .device = train_device};
}

/* x[count][p] <- the rows at positions first .. first + count - 1 of an epoch, scaled. */
static void batch_make(struct shuffle *s, const struct made *m, gidx epoch, gidx first, idx count,
                       int scale, float *x)
{
  for (idx i = 0; i < count; i++) {
    idx skip, in = 0, n = 0;
    gidx row = 0;
    shuffle_take(s, epoch, first + i, &skip);
    for (idx left = s->at[skip]; in < shuffle_windows(s); in++, left -= n) {
      shuffle_window(s, in, &row, &n);
      if (left >= n) continue;
      row += left;
      break;
    }
    for (idx c = 0; c < m->p; c++) x[i * m->p + c] = ldexpf(value_of(row, c, m->p), scale);
  }
}

/* Train by plain loops, from the start that the task has.  *dead grows by the dead atoms of each
 * step. */
static void reference_run(const struct train_task *t, struct made *m, struct train_state *s,
                          struct arena *arena, gidx *dead)
{
  struct train_sizes z = t->sizes;
  struct shuffle order;
  float *x;
  gidx each = ceil_div(m->n, t->batch);
  z.p = m->p;
  arena_alloc(arena, &x, imax(t->batch, 1024) * m->p, sizeof *x);
  rows_make(m, 0, (idx)imin(m->n, 1024), x);
  int scale = train_scale(x, (idx)imin(m->n, 1024), m->p);
  train_state_alloc(s, arena, z.k, z.p);
  train_atoms_draw(s->w[TRAIN_DECODER], z.k, z.p, t->seed);
  train_start(s, z.k, z.p, s->w[TRAIN_DECODER]);
  shuffle_init(&order, arena, m->n, t->seed);
  for (gidx step = 0; step < t->steps; step++) {
    gidx first = step % each * t->batch;
    idx n = (idx)imin(t->batch, m->n - first);
    for (idx a = 0; a < z.k; a++) *dead += s->idle[a] >= z.dead_rows;
    batch_make(&order, m, step / each, first, n, scale, x);
    train_step_reference(&z, s, x, n, learning_rate_at(&t->rate, step, t->steps), step + 1);
  }
}

/* Broadcast the results of the plain loops, which run only on rank 0, because they take most of the
 * time. */
static int reference_give(struct comm *c, struct train_state *s, idx k, idx p, gidx *dead)
{
  for (int i = 0; i < TRAIN_ARRAYS; i++)
    TRY(comm_broadcast(c, s->w[i], train_numbers(k, p, i), sizeof *s->w[i]));
  for (int i = 0; i < LENGTH(s->offset); i++)
    TRY(comm_broadcast(c, s->offset[i], p, sizeof *s->offset[i]));
  TRY(comm_broadcast(c, s->idle, k, sizeof *s->idle));
  TRY(comm_broadcast(c, &s->threshold, 1, sizeof s->threshold));
  return comm_broadcast(c, dead, 1, sizeof *dead);
}

static int same_state(const struct train_state *a, const struct train_state *b, idx k, idx p)
{
  int same = memcmp(a->idle, b->idle, (size_t)k * sizeof *a->idle) == 0 &&
             memcmp(&a->threshold, &b->threshold, sizeof a->threshold) == 0;
  for (int i = 0; i < LENGTH(a->offset); i++)
    same &= memcmp(a->offset[i], b->offset[i], (size_t)p * sizeof(float)) == 0;
  for (int i = 0; i < TRAIN_ARRAYS; i++)
    same &= memcmp(a->w[i], b->w[i], (size_t)train_numbers(k, p, i) * sizeof(float)) == 0;
  return same;
}

/* The number of rows of all pools from which the steps take rows. */
static gidx pools_rows(const struct train_task *t, gidx n, struct arena *arena)
{
  struct shuffle s;
  gidx rows = 0, each = ceil_div(n, t->batch);
  shuffle_init(&s, arena, n, t->seed);
  for (gidx step = 0; step < t->steps; step++) {
    gidx first = step % each * t->batch, end = imin(first + t->batch, n);
    for (gidx row = first; row < end; row++) {
      gidx had_epoch = s.epoch, had_pool = s.pool;
      idx skip;
      shuffle_take(&s, step / each, row, &skip);
      if (s.epoch != had_epoch || s.pool != had_pool) rows += s.rows;
    }
  }
  return rows;
}

struct problem {
  gidx n;
  idx p, k, s, batch;
  gidx steps;
  int is_fixed, has_dead;
  real l0;     /* mean number of codes per row; 0: s codes in each row */
  gidx period; /* for rows_period */
  const char *nested;
  int learns_offset;
};

static void problem_check(struct comm *c, const struct problem *q)
{
  struct made made = {.n = q->n, .p = q->p};
  struct row_source rows = {.n = q->n, .p = q->p, .name = "rows", .self = &made, .read = rows_make};
  struct train_task task = task_of(&rows, q->k, q->s, q->batch, q->steps);
  struct train_result result;
  struct train_state wanted;
  struct arena arena = {0};
  gidx dead = 0;
  task.sizes.is_fixed = q->is_fixed;
  task.sizes.l0 = q->l0;
  task.sizes.learns_offset = q->learns_offset;
  ok(!q->nested || !nested_read(q->nested, q->k, &task.sizes.nested), "%s", status_message());
  rows_period = q->period;
  if (c->rank == 0)
    reference_run(&task, &made, &wanted, &arena, &dead);
  else
    train_state_alloc(&wanted, &arena, q->k, q->p);
  ok(!reference_give(c, &wanted, q->k, q->p, &dead), "%s", status_message());
  for (task.threads = 1; task.threads <= 3; task.threads += 2) {
    struct kept kept = {.stop_at = -1, .k = q->k, .p = q->p};
    made.read = 0;
    const struct train_sink sink = {&kept, point_keep, {stop_asked, stop_told, &kept}, {0}};
    int status = train_run(&task, c, &sink, &result);
    ok(!status && same_state(&kept.state, &wanted, q->k, q->p),
       "%lld rows of %d%s, %d atoms (%s), batches of %d, l0 %g, %d threads, %lld dead: %s",
       (long long)q->n, q->p, q->learns_offset ? " less a bias" : "", q->k,
       q->nested ? q->nested : "all", q->batch, q->l0, task.threads, (long long)dead,
       status_message());
    gidx all = q->n + imin(q->n, SHIFT_ROWS) + pools_rows(&task, q->n, &arena);
    ok(status || c->size > 1 || made.read == all, "%lld rows were read, not %lld",
       (long long)made.read, (long long)all);
    status_clear();
    arena_free(&kept.arena);
  }
  rows_period = 0;
  ok(dead > 0 || !q->has_dead, "%d atoms: none died", q->k);
  arena_free(&arena);
}

static void problems_check(struct comm *c, const struct problem *problems, int count)
{
  for (int i = 0; i < count; i++)
    if (!is_small() || problems[i].n * problems[i].steps < 15000) problem_check(c, &problems[i]);
}

/* The cases with a mean number of codes (l0) have batches with fewer rows than ranks, batches
 * without a code at the end of an epoch, and more codes than positive scores. */
static void check_reference(struct comm *c)
{
  static const struct problem rows[] = {
      {700, 24, 40, 4, 96, 20, 0, 1, 0, 0, NULL, 0},
      {700, 24, 40, 4, 96, 12, 1, 1, 0, 0, NULL, 0},
      {5000, 5, 33, 1, 2600, 9, 0, 0, 0, 0, NULL, 0},
      {130, 7, 2, 1, 1, 40, 0, 1, 0, 0, NULL, 0},
      {200, 3, 20, 20, 200, 5, 0, 0, 0, 0, NULL, 0},
      {3000, 70, 300, 32, 1500, 6, 0, 0, 0, 0, NULL, 0},
      {40000, 3, 5, 1, 7000, 14, 0, 0, 0, 0, NULL, 0},
      {190, 9, 24, 3, 24, 200, 0, 1, 0, 0, NULL, 0},
  };
  static const struct problem batches[] = {
      {700, 24, 40, 4, 96, 20, 0, 0, 4, 0, NULL, 0},
      {700, 24, 40, 4, 96, 12, 1, 0, 3.7, 0, NULL, 0},
      {5000, 5, 33, 1, 2600, 9, 0, 0, 1.5, 0, NULL, 0},
      {131, 7, 9, 1, 2, 140, 0, 1, 0.5, 0, NULL, 0},
      {200, 3, 20, 20, 200, 5, 0, 0, 20, 0, NULL, 0},
      {3000, 70, 300, 32, 1500, 6, 0, 0, 31.4, 0, NULL, 0},
      {190, 9, 24, 3, 24, 200, 0, 1, 1 / 12., 0, NULL, 0},
      {700, 24, 40, 4, 96, 20, 0, 0, 2.3, 5, NULL, 0},
      {300, 4, 9, 1, 90, 30, 0, 0, 0.7, 2, NULL, 0},
  };
  static const struct problem nested[] = {
      {700, 24, 40, 4, 96, 20, 0, 1, 0, 0, "3,17,40", 0},
      {700, 24, 40, 4, 96, 12, 1, 1, 0, 0, "1,40", 0},
      {5000, 5, 33, 1, 2600, 9, 0, 0, 1.5, 0, "1,2,3,33", 0},
      {130, 7, 2, 1, 1, 40, 0, 1, 0, 0, "1,2", 0},
      {200, 3, 20, 20, 200, 5, 0, 0, 20, 0, "19,20", 0},
      {190, 9, 24, 3, 24, 200, 0, 1, 3, 0, "24", 0},
      {190, 9, 24, 3, 24, 200, 0, 1, 2.5, 0, "1,3,5,7,9,11,13,15,17,18,19,20,21,22,23,24", 0},
  };
  static const struct problem learned[] = {
      {700, 24, 40, 4, 96, 20, 0, 1, 0, 0, NULL, 1},
      {700, 24, 40, 4, 96, 12, 1, 0, 3.5, 0, "3,17,40", 1},
      {5000, 5, 33, 1, 2600, 9, 0, 0, 1.5, 0, NULL, 1},
      {130, 7, 2, 1, 1, 40, 0, 1, 0, 0, "1,2", 1},
      {190, 9, 24, 3, 24, 200, 0, 1, 2.5, 0, "1,5,24", 1},
  };
  claim_begin("training has the bits of the plain loops");
  problems_check(c, rows, LENGTH(rows));
  claim_end();
  claim_begin("training with codes chosen over whole batches has the bits of the plain loops");
  problems_check(c, batches, LENGTH(batches));
  claim_end();
  claim_begin("training with nested widths has the bits of the plain loops");
  problems_check(c, nested, LENGTH(nested));
  claim_end();
  claim_begin("training with a learned bias before the encoder has the bits of the plain loops");
  problems_check(c, learned, LENGTH(learned));
  claim_end();
}

/* Training that the last rank stops at a step, and that is then continued, is the same as `all`,
 * whether states are saved after every step or not. */
static void resumed_check(struct comm *c, struct train_task *task, const struct kept *all,
                          gidx stop_at)
{
  struct train_result result;
  struct kept part = {.stop_at = stop_at, .asks = c->rank == c->size - 1, .k = all->k, .p = all->p};
  struct kept rest = {.stop_at = -1, .k = all->k, .p = all->p};
  part.saves = stop_at % 2;
  const struct train_sink first = {&part, point_keep, {stop_asked, stop_told, &part}, {0}};
  const struct train_sink last = {&rest, point_keep, {stop_asked, stop_told, &rest}, {0}};
  task->start = NULL;
  int status = train_run(task, c, &first, &result);
  ok(part.states == (part.saves ? stop_at + 1 : 1), "%lld states after %lld steps",
     (long long)part.states, (long long)stop_at);
  ok(!status && result.stopped && part.told == 1 && part.point.step == stop_at,
     "a stop asked in step %lld comes after step %lld: %s", (long long)stop_at,
     (long long)part.point.step, status_message());
  task->start = &part.point;
  if (!status) status = train_run(task, c, &last, &result);
  int same = !status && same_state(&rest.state, &all->state, (idx)all->k, (idx)all->p) &&
             rest.point.count == all->point.count;
  for (gidx i = 0; same && i < rest.point.count; i++)
    same = memcmp(&rest.lines[i], &all->lines[i], offsetof(struct train_line, seconds)) == 0;
  ok(same, "training stopped after %lld steps and continued is the same: %s", (long long)stop_at,
     status_message());
  status_clear();
  arena_free(&part.arena);
  arena_free(&rest.arena);
}

/* Training is stopped before the first step, in the middle of an epoch and between two lines, and
 * where a line is due.  A job that is asked to stop in its last step is not stopped, but done. */
static void check_resumed(struct comm *c, real l0)
{
  struct made made = {.n = 900, .p = 12};
  struct row_source rows = {.n = 900, .p = 12, .name = "rows", .self = &made, .read = rows_make};
  struct train_task task = task_of(&rows, 30, 3, 64, 40);
  struct train_result result;
  struct kept all = {.stop_at = 40, .asks = 1, .k = 30, .p = 12};
  const struct train_sink sink = {&all, point_keep, {stop_asked, stop_told, &all}, {0}};
  task.held_out_fraction = 0.2;
  task.center = 1;
  task.sizes.l0 = l0;
  task.sizes.learns_offset = l0 > 0;
  int status = train_run(&task, c, &sink, &result);
  ok(!status && !result.stopped && all.point.step == 40,
     "a stop asked in the last step does not stop: %s", status_message());
  resumed_check(c, &task, &all, 0);
  resumed_check(c, &task, &all, 17);
  resumed_check(c, &task, &all, 21);
  ok(all.lines[all.point.count - 1].held > all.lines[l0 > 0].held,
     "the explained variance of unseen rows rises");
  /* rows are noise, and seen rows were overfitted: unseen rows have fewer codes */
  ok(l0 == 0 || fabs(all.lines[all.point.count - 1].l0 - l0) < 0.3 * l0, "%g codes per row, not %g",
     all.lines[all.point.count - 1].l0, l0);
  arena_free(&all.arena);
}

/* The quality of a row by the references, with the encoder and the atoms of a state. */
static struct row_quality row_quality_of(const struct train_validation *j,
                                         const struct train_state *s, int scale, idx row,
                                         float *work)
{
  const float *x = j->x + (gidx)row * j->p;
  const float *vectors[64];
  idx support[64];
  float codes[64];
  for (idx a = 0; a < j->k; a++) work[a] = ldexpf(s->w[TRAIN_BIAS][a], -scale);
  const struct encoder e = {.kind = ENCODER_TOPK,
                            .k = j->k,
                            .p = j->p,
                            .top = j->s,
                            .centered = 1,
                            .weights = s->w[TRAIN_ENCODER],
                            .bias = work};
  float *scores = work + j->k;
  for (idx a = 0; a < j->k; a++) scores[a] = encoder_score(&e, x, a);
  idx n = encoder_select(&e, scores, support, codes);
  for (idx i = 0; i < n; i++) vectors[i] = s->w[TRAIN_DECODER] + (gidx)support[i] * j->p;
  return quality_reference(x, vectors, n, 1, j->p, codes);
}

/* Are the qualities of all rows those of the references, and does `explained` follow from them? */
static int qualities_equal(struct train_validation *j, const struct train_state *s, int scale,
                           real explained)
{
  float *work = malloc(2 * (size_t)j->k * sizeof *work);
  int equal = work != NULL;
  real chains[2] = {0};
  for (idx i = 0; i < j->n && work; i++) {
    struct row_quality q = row_quality_of(j, s, scale, i, work);
    equal &= memcmp(&q.error, &j->quality[i].error, sizeof q.error) == 0;
    equal &= q.nonzero == j->quality[i].nonzero;
    chains[i / ROW_BLOCK] += q.error;
  }
  real wanted = 1 - (chains[0] + chains[1]) / j->tss;
  free(work);
  return equal && (j->c->size > 1 || memcmp(&wanted, &explained, sizeof wanted) == 0);
}

static void judge_check(struct comm *c, gidx n, idx p, idx k, idx s, int threads, int is_wild)
{
  struct made made = {.n = n, .p = p};
  struct row_source rows = {.n = n, .p = p, .name = "rows", .self = &made, .read = rows_make};
  struct train_validation j = {
      .c = c, .rows = &rows, .k = k, .p = p, .s = s, .threads = threads, .variant = "auto"};
  struct train_state state = {0};
  struct arena arena = {0};
  real explained = 0;
  int status = train_state_alloc(&state, &arena, k, p), equal = 1;
  train_atoms_draw(state.w[TRAIN_DECODER], k, p, 5);
  train_start(&state, k, p, state.w[TRAIN_DECODER]);
  if (!status) status = train_validation_alloc(&j, &arena);
  if (!status) status = train_validation_open(&j, train_device);
  status = comm_agree(c, status);
  if (!status) status = train_validation_read(&j, NULL);
  for (int turn = 0; turn < 3 && !status; turn++) { /* weights change in between */
    for (idx a = 0; a < k; a++) {
      state.w[TRAIN_BIAS][a] = (float)random_normal(6, 2, (uint64_t)(turn * k + a));
      state.w[TRAIN_ENCODER][(gidx)a * p + turn % p] += 0.1f;
    }
    if (is_wild && turn == 1) state.w[TRAIN_ENCODER][0] = 3e38f;
    status = train_validation_run(&j, &state, -3, &explained);
    if (is_wild && turn > 0)
      equal &= isnan(explained);
    else
      equal &= !status && qualities_equal(&j, &state, -3, explained);
  }
  ok(!status && equal, "%lld rows of %d, %d of %d atoms, %d threads%s: %s", (long long)n, p, s, k,
     threads, is_wild ? ", a score that is not finite" : "", status_message());
  train_validation_close(&j);
  comm_recover(c);
  status_clear();
  arena_free(&arena);
}

static void check_judge(struct comm *c)
{
  static const struct {
    gidx n;
    idx p, k, s;
  } shapes[] = {{3, 2, 1, 1}, {700, 24, 300, 5}, {4200, 9, 40, 40}, {130, 130, 1000, 64}};
  claim_begin("held-out rows are judged with the bits of the references");
  for (int i = 0; i < LENGTH(shapes) - 2 * is_small(); i++)
    for (int threads = 1; threads <= 3; threads += 2)
      judge_check(c, shapes[i].n, shapes[i].p, shapes[i].k, shapes[i].s, threads, 0);
  judge_check(c, 300, 24, 50, 5, 1, 1);
  claim_end();
}

#endif
