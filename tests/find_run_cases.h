/* SPDX-License-Identifier: BSD-3-Clause
 * Checks of a fit that finds features, on any device, against the plain loops.  The fit has several
 * stages, and replaces near duplicates and dead atoms.  It is also stopped and continued. */
#ifndef TESTS_FIND_RUN_CASES_H
#define TESTS_FIND_RUN_CASES_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "find/find.h"
#include "model/find_grow.h"
#include "model/find_nested.h"
#include "model/shuffle.h"
#include "device_how.h"

enum { MOST_K = 128, MOST_P = 16, MOST_LINES = 64, FEATURES = 60 };

struct made {
  gidx n;
  idx p;
  float features[FEATURES][MOST_P];
};

/* A row is a sum of a few of the features, more often of the first ones, plus noise and an offset.
 * Some rows are zero. */
static void row_make(const struct made *m, gidx row, float *out)
{
  memset(out, 0, (size_t)m->p * sizeof *out);
  if (row % 50 == 7) return;
  for (uint64_t j = 0; j < FEATURES; j++) {
    if (random_below(3, j, (uint64_t)row, 12 + 4 * j) != 0) continue;
    float size = 2 + 0.5f * (float)random_normal(4, j, (uint64_t)row);
    for (idx c = 0; c < m->p; c++) out[c] += size * m->features[j][c];
  }
  for (idx c = 0; c < m->p; c++)
    out[c] += 0.05f * (float)random_normal(5, 1, (uint64_t)(row * m->p + c)) + 0.3f;
}

static int rows_make(void *self, gidx first, idx count, float *out)
{
  const struct made *m = self;
  for (gidx i = 0; i < count; i++) row_make(m, first + i, out + i * m->p);
  return OK;
}

static void made_open(struct made *m, gidx n, idx p)
{
  real wide[MOST_P];
  *m = (struct made){.n = n, .p = p};
  for (int j = 0; j < FEATURES; j++) {
    for (idx c = 0; c < p; c++) wide[c] = random_normal(9, (uint64_t)j, (uint64_t)c);
    find_scale(wide, p, m->features[j]);
  }
}

/* A copy of the point that a run has reached, from which another run can continue. */
struct kept {
  struct find_point point;
  float atoms[MOST_K * MOST_P], means[MOST_K], offset[MOST_P];
  gidx firing[MOST_K];
  real described[MOST_P], mean[MOST_P];
  struct find_line lines[MOST_LINES];
  gidx stop_at, looks; /* stop at this call of stop_asked(), -1: never; calls so far */
  int asks, ends;      /* 1: this rank stops the run; number of points with reason FIND_END */
};

static idx columns; /* of the rows of the current shape */

static int point_keep(void *self, const struct find_point *p, enum find_reason why)
{
  struct kept *k = self;
  size_t atoms = (size_t)p->k, vector = (size_t)columns;
  k->point = *p;
  memcpy(k->atoms, p->atoms, atoms * vector * sizeof *k->atoms);
  memcpy(k->means, p->means, atoms * sizeof *k->means);
  memcpy(k->firing, p->firing, atoms * sizeof *k->firing);
  memcpy(k->offset, p->offset, vector * sizeof *k->offset);
  memcpy(k->described, p->described, vector * sizeof *k->described);
  memcpy(k->lines, p->lines, (size_t)p->count * sizeof *k->lines);
  if (p->mean) memcpy(k->mean, p->mean, vector * sizeof *k->mean);
  k->point.mean = p->mean ? k->mean : NULL;
  k->point.atoms = k->atoms;
  k->point.means = k->means;
  k->point.firing = k->firing;
  k->point.offset = k->offset;
  k->point.described = k->described;
  k->point.lines = k->lines;
  k->ends += why == FIND_END;
  return OK;
}

static uint64_t stop_asked(void *self)
{
  struct kept *k = self;
  return k->stop_at >= 0 && k->asks && k->looks++ == k->stop_at;
}

static void stop_told(void *self, uint64_t asked)
{
  (void)self, (void)asked;
}

/* The state of the fit by plain loops. */
struct plain {
  const struct find_recipe *recipe;
  struct find_plan plan;
  const struct made *made;
  struct shuffle shuffle;
  idx n, k, p;
  float *y, *left, *codes; /* y, left: [batch][p]; codes: [batch][k] */
  float atoms[MOST_K * MOST_P], means[MOST_K], offset[MOST_P];
  gidx firing[MOST_K], replaced;
  real code_sums[MOST_K], square, mean[MOST_P], *weights;
  real gram[(MOST_K + 1) * (MOST_K + 1)], target[(MOST_K + 1) * MOST_P];
  gidx rows, taken;
  struct find_step step;
  int center;
  struct arena arena;
};

/* y <- the row at a position of an epoch, minus the mean and the offset. */
static void row_take(struct plain *q, gidx epoch, gidx position, float *y)
{
  idx skip, n = 0;
  gidx row = 0;
  shuffle_take(&q->shuffle, epoch, position, &skip);
  idx left = q->shuffle.at[skip];
  for (idx w = 0; w < shuffle_windows(&q->shuffle); w++, left -= n) {
    shuffle_window(&q->shuffle, w, &row, &n);
    if (left < n) break;
  }
  row_make(q->made, row + left, y);
  rows_center(y, 1, q->p, q->center ? q->mean : NULL);
  for (idx c = 0; c < q->p; c++) y[c] -= q->offset[c];
}

static void plain_read(struct plain *q, gidx number)
{
  gidx epoch, first;
  find_plan_batch(&q->plan, number, &epoch, &first, &q->n);
  for (idx i = 0; i < q->n; i++) row_take(q, epoch, first + i, q->y + (gidx)i * q->p);
  q->taken = 0;
}

static struct find_rows rows_of(const struct plain *q, real rho)
{
  return (struct find_rows){.n = q->n,
                            .k = q->k,
                            .p = q->p,
                            .x = q->y,
                            .atoms = q->atoms,
                            .toward = q->means,
                            .rho = rho,
                            .relative = q->recipe->relative,
                            .floor = q->recipe->floor * q->square};
}

static int plain_code(struct plain *q, real l0, real rho, int looks, float *threshold)
{
  const struct find_rows rows = rows_of(q, rho);
  return find_batch_reference(&rows, l0, looks, q->codes, q->left, threshold);
}

/* Code the batch block after block.  The first batch of an update finds the thresholds. */
static int plain_nested(struct plain *q, real l0, real rho, int is_first, float *threshold)
{
  struct find_rows rows = rows_of(q, rho), sample = rows;
  struct find_blocks blocks;
  int looks = q->recipe->looks;
  sample.n = (idx)imin(rows.n, NESTED_SAMPLE);
  find_plan_blocks(q->k, &blocks);
  if (is_first)
    TRY(find_thresholds_reference(&sample, &blocks, l0, looks, nested_top(rows.relative, q->square),
                                  threshold));
  return find_nested_reference(&rows, &blocks, looks, threshold, q->codes, q->left);
}

/* Add the current batch to the sums. */
static void plain_add(struct plain *q)
{
  for (idx i = 0; i < q->n; i++) {
    real left = 0;
    for (idx c = 0; c < q->p; c++) {
      real e = q->left[(gidx)i * q->p + c];
      left = fma(e, e, left);
    }
    q->weights[i] = find_row_weight(q->recipe, &q->step, left, q->square);
    for (idx a = 0; a < q->k; a++) {
      float code = q->codes[(gidx)i * q->k + a];
      q->firing[a] += code > 0;
      if (code > 0) q->code_sums[a] += code;
    }
  }
  find_sums_reference(q->y, q->codes, q->weights, q->n, q->k, q->p, q->gram, q->target);
  q->rows += q->n;
}

/* A new atom: the residual of the next row of the batch.  If there is none, or it is zero, the atom
 * is random. */
static void atom_make(struct plain *q, const float *rows, idx number, gidx update, gidx end,
                      float *atom)
{
  real wide[MOST_P];
  gidx row = q->taken + number;
  int there = 0;
  memset(atom, 0, (size_t)q->p * sizeof *atom);
  for (idx c = 0; row < end && c < q->p; c++) wide[c] = rows[row * q->p + c];
  if (row < end) find_scale(wide, q->p, atom);
  for (idx c = 0; c < q->p; c++) there |= atom[c] != 0;
  if (there) return;
  for (idx c = 0; c < q->p; c++)
    wide[c] = random_normal(5, 0x7466, (uint64_t)((update * q->plan.grown + number) * q->p + c));
  find_scale(wide, q->p, atom);
}

static void plain_renew(struct plain *q, const unsigned char *renew, const float *rows, gidx update)
{
  idx made = 0;
  for (idx a = 0; a < q->k; a++) made += renew[a];
  gidx end = imin(q->n, q->taken + made);
  made = 0;
  for (idx a = 0; a < q->k; a++) {
    if (!renew[a]) continue;
    atom_make(q, rows, made++, update, end, q->atoms + (gidx)a * q->p);
    q->means[a] = 0;
    q->firing[a] = 0;
  }
  q->taken = end;
}

/* Add atoms until there are k, from the residuals of the first rows of the batch. */
static int plain_grow(struct plain *q, idx k, const float *left, gidx update)
{
  idx n = (idx)imin(q->n, GROW_ROWS), need = k - q->k, m = grow_candidates(need, n);
  struct arena arena = {0};
  float *rows, *v, *ordered, *threshold;
  idx *order, *chosen;
  real wide[MOST_P];
  gidx p = q->p;
  if (need <= 0) return OK;
  TRY(arena_alloc(&arena, &rows, n * p, sizeof *rows));
  TRY(arena_alloc(&arena, &v, m * p, sizeof *v));
  TRY(arena_alloc(&arena, &ordered, m * p, sizeof *v));
  TRY(arena_alloc(&arena, &threshold, m, sizeof *threshold));
  TRY(arena_alloc(&arena, &order, m, sizeof *order));
  TRY(arena_alloc(&arena, &chosen, need, sizeof *chosen));
  memcpy(rows, left, (size_t)(n * p) * sizeof *rows);
  if (q->k == 0) rows_about_mean(rows, n, q->p);
  for (idx j = 0; j < m; j++) {
    int there = 0;
    for (idx c = 0; j < n && c < p; c++) wide[c] = rows[j * p + c];
    if (j < n) find_scale(wide, q->p, v + j * p);
    for (idx c = 0; c < p; c++) there |= v[j * p + c] != 0;
    for (idx c = 0; c < p && !there; c++)
      wide[c] = random_normal(5, 0x7466, (uint64_t)((update * q->plan.grown + j) * q->p + c));
    if (!there) find_scale(wide, q->p, v + j * p);
  }
  const struct grow_rows r = {rows, n, q->p, grow_rank(n, k)};
  TRY(grow_directions_reference(&r, v, m, threshold));
  TRY(grow_order(threshold, m, order));
  for (idx j = 0; j < m; j++) memcpy(ordered + j * p, v + order[j] * p, (size_t)p * sizeof *v);
  grow_choose_reference(ordered, m, q->p, q->atoms, q->k, need, chosen);
  for (idx i = 0; i < need; i++) {
    memcpy(q->atoms + (q->k + i) * p, ordered + chosen[i] * p, (size_t)p * sizeof *v);
    q->means[q->k + i] = 0;
    q->firing[q->k + i] = 0;
  }
  q->k = k;
  arena_free(&arena);
  return OK;
}

static void plain_replace(struct plain *q, gidx update)
{
  unsigned char renew[MOST_K] = {0};
  for (idx a = 0; a < q->k; a++)
    for (idx b = 0; b < a && !renew[a]; b++) {
      float cosine = find_score(q->atoms + (gidx)a * q->p, q->atoms + (gidx)b * q->p, q->p);
      renew[a] = !renew[b] && cosine > (float)q->recipe->twin;
    }
  for (idx a = 0; a < q->k; a++) renew[a] |= find_is_useless(q->firing[a], q->rows);
  for (idx a = 0; a < q->k; a++) q->replaced += renew[a];
  plain_renew(q, renew, q->left, update);
}

/* Keep plan.k of the grown atoms, which are in descending order of their frequency.  An atom is
 * spare if it is useless, or near to an earlier atom that is not spare.  Spare atoms are kept only
 * if there are not enough others.  The mean contribution of the atoms that are dropped is added to
 * the offset. */
static void plain_keep(struct plain *q)
{
  unsigned char near[MOST_K] = {0}, take[MOST_K] = {0};
  idx n = 0, to = 0;
  gidx p = q->p;
  for (idx a = 0; a < q->k; a++) near[a] = find_is_useless(q->firing[a], q->rows);
  for (idx a = 0; a < q->k; a++)
    for (idx b = 0; b < a && !near[a]; b++)
      near[a] = !near[b] && fabsf(find_score(q->atoms + a * p, q->atoms + b * p, q->p)) >
                                (float)q->recipe->apart;
  for (int others = 0; others < 2; others++)
    for (idx a = 0; a < q->k && n < q->plan.k; a++)
      if (near[a] == others) take[a] = 1, n++;
  for (idx c = 0; c < q->p; c++) {
    real acc = q->offset[c];
    for (idx a = 0; a < q->k; a++)
      if (!take[a])
        acc = fma(q->means[a] * ((real)q->firing[a] / (real)q->rows), q->atoms[a * p + c], acc);
    q->offset[c] = (float)acc;
  }
  for (idx a = 0; a < q->k; a++) {
    if (!take[a]) continue;
    memmove(q->atoms + to * p, q->atoms + a * p, (size_t)p * sizeof *q->atoms);
    q->means[to] = q->means[a];
    q->firing[to++] = q->firing[a];
  }
  q->k = n;
}

static int plain_move(struct plain *q, const struct find_step *step)
{
  idx order[MOST_K];
  real moved[MOST_K * MOST_P];
  float before[MOST_K * MOST_P];
  gidx firing[MOST_K];
  struct find_blocks blocks;
  const struct find_sums sums = {
      q->k, q->p, q->gram, q->target, q->rows, find_ridge(q->recipe, step, q->rows, q->square)};
  memcpy(before, q->atoms, sizeof before);
  memcpy(firing, q->firing, sizeof firing);
  find_plan_blocks(q->k, &blocks);
  if (step->is_last) blocks = (struct find_blocks){.count = 1, .end = {q->k}};
  TRY(find_order(firing, q->k, order));
  TRY(find_update_reference(&sums, &blocks, order, before, moved, q->offset));
  for (idx i = 0; i < q->k; i++) {
    gidx a = order[i], p = q->p;
    memcpy(q->atoms + i * p, before + a * p, (size_t)p * sizeof *before);
    if (firing[a]) find_scale(moved + i * p, q->p, q->atoms + i * p);
    q->means[i] = firing[a] ? (float)(q->code_sums[a] / (real)firing[a]) : 0;
    q->firing[i] = firing[a];
  }
  return OK;
}

static int plain_update(struct plain *q, gidx update)
{
  const struct find_step step = find_plan_step(&q->plan, update);
  float threshold[FIND_LOOKS + 1];
  memset(q->gram, 0, sizeof q->gram);
  memset(q->target, 0, sizeof q->target);
  memset(q->firing, 0, sizeof q->firing);
  memset(q->code_sums, 0, sizeof q->code_sums);
  q->rows = 0;
  q->step = step;
  for (gidx b = 0; b < step.batches; b++) {
    plain_read(q, step.first + b);
    TRY(plain_nested(q, step.l0, find_rho(q->recipe, &step), b == 0, threshold));
    plain_add(q);
  }
  TRY(plain_move(q, &step));
  if (step.replaces) plain_replace(q, update);
  if (update + 1 < find_plan_updates(&q->plan))
    TRY(plain_grow(q, find_plan_step(&q->plan, update + 1).k, q->left, update + 1));
  else
    plain_keep(q);
  return OK;
}

/* q->square <- the mean squared norm of the first rows, after the mean is subtracted. */
static void plain_begin(struct plain *q)
{
  float x[MOST_P];
  gidx n = imin(q->made->n, SHUFFLE_ROWS);
  for (gidx i = 0; i < n; i++) {
    row_make(q->made, i, x);
    rows_center(x, 1, q->p, q->center ? q->mean : NULL);
    for (idx c = 0; c < q->p; c++) q->square = fma(x[c], x[c], q->square);
  }
  q->square /= (real)n;
}

static int plain_run(struct plain *q, float *threshold)
{
  const struct find_plan *plan = &q->plan;
  gidx batch = plan->batch;
  TRY(arena_alloc(&q->arena, &q->y, batch * q->p, sizeof(float)));
  TRY(arena_alloc(&q->arena, &q->left, batch * q->p, sizeof(float)));
  TRY(arena_alloc(&q->arena, &q->codes, batch * plan->grown, sizeof(float)));
  TRY(arena_alloc(&q->arena, &q->weights, batch, sizeof(real)));
  TRY(shuffle_init(&q->shuffle, &q->arena, q->made->n, 5));
  plain_begin(q);
  plain_read(q, 0);
  TRY(plain_grow(q, find_plan_step(plan, 0).k, q->y, 0));
  for (gidx u = 0; u < find_plan_updates(plan); u++) TRY(plain_update(q, u));
  plain_read(q, 0);
  return plain_code(q, plan->l0, 0, q->recipe->end_looks, threshold);
}

struct shape {
  gidx n;
  idx k, p, batch;
  real l0, rho, twin;
  int center, relative;
};

static const char *find_device; /* "cpu" or "cuda" */

static struct find_task task_of(const struct shape *s, const struct row_source *rows)
{
  struct find_task task = {.rows = rows,
                           .center = s->center,
                           .recipe = find_recipe(s->k, s->l0),
                           .seed = 5,
                           .threads = 1,
                           .variant = "auto",
                           .device = find_device};
  struct find_recipe *r = &task.recipe;
  r->plan.batch = s->batch;
  r->plan.part = 2 * s->batch;
  r->plan.last = 4;
  r->plan.joint = 3;
  r->relative = s->relative;
  r->rho = s->rho;
  r->twin = s->twin;
  return task;
}

static int is_equal(const struct kept *k, const struct plain *q)
{
  size_t atoms = (size_t)q->k, p = (size_t)q->p;
  return k->point.k == q->k && !memcmp(k->atoms, q->atoms, atoms * p * sizeof(float)) &&
         !memcmp(k->means, q->means, atoms * sizeof(float)) &&
         !memcmp(k->firing, q->firing, atoms * sizeof(gidx)) &&
         !memcmp(k->offset, q->offset, p * sizeof(float));
}

/* Run the task to its end.  With stop_at >= 0 it is stopped at that call of stop_asked(), and then
 * continued. */
static int task_run(const struct find_task *task, struct comm *c, struct kept *k, gidx stop_at)
{
  struct find_result result;
  struct find_task more = *task;
  const struct find_sink sink = {
      .self = k, .point = point_keep, .stops = {stop_asked, stop_told, k}};
  k->stop_at = stop_at;
  k->asks = c->rank == c->size - 1;
  TRY(find_run(task, c, &sink, &result));
  if (stop_at < 0) return OK;
  static struct kept before;
  before = *k;
  before.point.atoms = before.atoms;
  before.point.means = before.means;
  before.point.firing = before.firing;
  before.point.offset = before.offset;
  before.point.described = before.described;
  before.point.lines = before.lines;
  if (before.point.mean) before.point.mean = before.mean;
  more.start = &before.point;
  k->stop_at = -1;
  return result.stopped ? find_run(&more, c, &sink, &result) : OK;
}

/* The plain loops run on rank 0, which tells the other ranks what they found. */
static int plain_share(struct comm *c, struct plain *q, float *threshold)
{
  int status = c->rank == 0 ? plain_run(q, threshold) : OK;
  struct arena own = q->arena;
  TRY(comm_agree(c, status));
  TRY(comm_broadcast(c, q, sizeof *q, 1));
  q->arena = own;
  return comm_broadcast(c, threshold, FIND_LOOKS + 1, sizeof *threshold);
}

static void shape_check(struct comm *c, const struct shape *s)
{
  static struct made made;
  static struct kept kept;
  static struct plain q;
  float threshold[FIND_LOOKS + 1];
  made_open(&made, s->n, s->p);
  const struct row_source rows = {
      .n = s->n, .p = s->p, .name = "rows", .self = &made, .read = rows_make};
  struct find_task task = task_of(s, &rows);
  columns = s->p;
  q = (struct plain){.recipe = &task.recipe, .plan = task.recipe.plan, .made = &made, .p = s->p};
  q.plan.rows = s->n;
  q.plan.batch = (idx)imin(q.plan.batch, s->n);
  q.center = s->center;
  find_plan_fill(&q.plan);
  for (int run = 0; run < 3; run++) {
    if (run == 1 && c->size > 1 && !is_full()) continue; /* other threads */
    kept = (struct kept){0};
    task.threads = 1 + run % 2;
    int status = task_run(&task, c, &kept, run == 2 ? 5 : -1);
    ok(!status && kept.ends == 1, "%lld rows, %d atoms: %s", (long long)s->n, s->k,
       status ? status_message() : "done");
    if (status) return;
    memcpy(q.mean, kept.mean, sizeof q.mean);
    if (!run) status = plain_share(c, &q, threshold);
    ok(!status && is_equal(&kept, &q), "atoms: %lld rows, %d atoms, %d columns, run %d",
       (long long)s->n, s->k, s->p, run);
    ok(!memcmp(kept.point.encoder.threshold, threshold,
               (size_t)(task.recipe.end_looks + 1) * sizeof *threshold),
       "thresholds: %lld rows, %d atoms, run %d", (long long)s->n, s->k, run);
  }
  ok(s->twin == 1 || q.replaced > 0, "%lld atoms were replaced", (long long)q.replaced);
  arena_free(&q.arena);
}

static void check_find(struct comm *c)
{
  static const struct shape shapes[] = {
      {3000, 24, 10, 500, 3, 0.3, 0.3, 0, 1}, {1000, 40, 16, 300, 2.5, 0, 0.25, 1, 1},
      {700, 12, 5, 1000, 2, 1, 0.2, 0, 0},    {60, 3, 2, 16, 1, 0, 1, 0, 1},
      {125, 64, 16, 125, 3, 0.3, 0.3, 0, 1},
  };
  claim_begin("atoms, offset and thresholds are those of the plain loops");
  for (int i = 0; i < LENGTH(shapes); i++) shape_check(c, &shapes[i]);
  claim_end();
}

#endif
