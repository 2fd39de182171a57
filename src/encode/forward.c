/* SPDX-License-Identifier: BSD-3-Clause
 * Each thread has a share of a block's rows, and scores a few of them at a time against the
 * matrix. */
#include "encode/forward.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "base/team.h"
#include "encode/scores.h"
#include "encode/statistics.h"
#include "model/codes.h"
#include "model/part.h"

struct workspace {       /* of a thread */
  float *scores;         /* [SCORE_ROWS][scores_width()] */
  float *residual;       /* [SCORE_ROWS][p] */
  idx *support;          /* [SCORE_ROWS][k] */
  float *codes;          /* [SCORE_ROWS][k] */
  const float **vectors; /* [k] */
};

struct forward {
  const struct forward_task *task;
  struct score_matrix matrix;
  float *raw, *x;              /* [ROW_BLOCK][p] rows, as read and less the mean */
  gidx n;                      /* rows of the block */
  struct row_quality *quality; /* [ROW_BLOCK] */
  struct workspace *work;      /* [threads] */
  struct statistics statistics;
  struct arena arena;
};

static int forward_alloc(struct forward *f)
{
  const struct forward_task *t = f->task;
  struct arena *a = &f->arena;
  TRY(scores_alloc(&f->matrix, a, t->k, t->p));
  TRY(arena_alloc(a, &f->raw, (gidx)ROW_BLOCK * t->p, sizeof(float)));
  TRY(arena_alloc(a, &f->x, (gidx)ROW_BLOCK * t->p, sizeof(float)));
  TRY(arena_alloc(a, &f->quality, ROW_BLOCK, sizeof *f->quality));
  TRY(arena_alloc(a, &f->work, t->threads, sizeof *f->work));
  for (int i = 0; i < t->threads; i++) {
    struct workspace *w = &f->work[i];
    TRY(arena_alloc(a, &w->scores, SCORE_ROWS * scores_width(&f->matrix), sizeof(float)));
    TRY(arena_alloc(a, &w->residual, (gidx)SCORE_ROWS * t->p, sizeof(float)));
    TRY(arena_alloc(a, &w->support, (gidx)SCORE_ROWS * t->k, sizeof(idx)));
    TRY(arena_alloc(a, &w->codes, (gidx)SCORE_ROWS * t->k, sizeof(float)));
    TRY(arena_alloc(a, &w->vectors, t->k, sizeof *w->vectors));
  }
  return OK;
}

/* Matching pursuit for rows[n][p]; found[n] <- how many atoms each row has. */
static void rows_pursue(const struct forward *f, struct workspace *w, const float *rows, idx n,
                        idx *found)
{
  const struct forward_task *t = f->task;
  int is_done[SCORE_ROWS] = {0};
  memcpy(w->residual, rows, (size_t)n * (size_t)t->p * sizeof *rows);
  for (idx step = 0; step < t->top; step++) {
    scores_products(&f->matrix, w->residual, n, w->scores);
    for (idx r = 0; r < n; r++) {
      if (is_done[r]) continue;
      idx had = found[r];
      found[r] = pursuit_step(t->atoms, t->k, t->p, w->scores + r * scores_width(&f->matrix),
                              w->residual + (gidx)r * t->p, w->support + (gidx)r * t->k,
                              w->codes + (gidx)r * t->k, had);
      is_done[r] = t->stops && found[r] == had;
    }
  }
}

/* found[n] <- how many atoms each row has; they are in w->support and w->codes. */
static void rows_describe(const struct forward *f, struct workspace *w, gidx first, idx n,
                          idx *found)
{
  const struct forward_task *t = f->task;
  const struct encoder *e = t->encoder;
  const float *rows = (e && !e->centered ? f->raw : f->x) + first * t->p;
  gidx wide = scores_width(&f->matrix);
  if (e) scores_products(&f->matrix, rows, n, w->scores);
  for (idx r = 0; r < n && e; r++) {
    encoder_finish(e, w->scores + r * wide);
    found[r] = encoder_select(e, w->scores + r * wide, w->support + (gidx)r * t->k,
                              w->codes + (gidx)r * t->k);
  }
  if (e) return;
  rows_pursue(f, w, rows, n, found);
}

/* A thread's share of the block. */
static void part_evaluate(void *self, gidx thread)
{
  struct forward *f = self;
  const struct forward_task *t = f->task;
  struct workspace *w = &f->work[thread];
  gidx end = (thread + 1) * f->n / t->threads;
  for (gidx first = thread * f->n / t->threads; first < end; first += SCORE_ROWS) {
    idx n = (idx)imin(end - first, SCORE_ROWS), found[SCORE_ROWS] = {0};
    rows_describe(f, w, first, n, found);
    for (idx r = 0; r < n; r++) {
      const idx *support = w->support + (gidx)r * t->k;
      for (idx j = 0; j < found[r]; j++) w->vectors[j] = t->atoms + (gidx)support[j] * t->p;
      f->quality[first + r] = quality_reference(f->x + (first + r) * t->p, w->vectors, found[r], 1,
                                                t->p, w->codes + (gidx)r * t->k);
    }
  }
}

static int block_read(struct forward *f, gidx first)
{
  const struct forward_task *t = f->task;
  f->n = imin(t->rows->n - first, ROW_BLOCK);
  TRY(t->rows->read(t->rows->self, first, (idx)f->n, f->raw));
  TRY(rows_source_check(t->rows, f->raw, first, f->n));
  memcpy(f->x, f->raw, (size_t)f->n * (size_t)t->p * sizeof *f->x);
  rows_center(f->x, f->n, t->p, t->mean);
  return OK;
}

static int blocks_evaluate(struct forward *f, struct comm *c, struct metrics *m)
{
  const struct forward_task *t = f->task;
  struct encode_part part = {.n = t->rows->n, .total = t->rows->n, .p = t->p};
  real *shift, *work;
  TRY(arena_alloc(&f->arena, &shift, t->p, sizeof *shift));
  TRY(arena_alloc(&f->arena, &work, 2 * (gidx)t->p, sizeof *work));
  TRY(statistics_init(&f->statistics, &f->arena, c, 1, t->p, shift, 0, t->rows->n));
  f->statistics.threads = t->threads;
  for (gidx first = 0; first < t->rows->n; first += ROW_BLOCK) {
    TRY(block_read(f, first));
    if (first == 0) rows_shift(f->x, (idx)imin(f->n, SHIFT_ROWS), t->p, shift);
    team_run(t->threads, t->threads, part_evaluate, f);
    statistics_alone(&f->statistics, f->x, f->quality, first, (idx)f->n, work);
  }
  TRY(statistics_finish(&f->statistics, c, &part.sums));
  part.shift = shift;
  part.norms = f->statistics.norms;
  part.nonzero = f->statistics.nonzero;
  part.codes = f->statistics.codes;
  return part_metrics(m, &part);
}

int forward_evaluate(const struct forward_task *task, struct comm *c, struct metrics *m)
{
  struct forward *f;
  TRY(struct_alloc(&f, sizeof *f));
  f->task = task;
  int status = forward_alloc(f);
  if (!status)
    scores_put(&f->matrix, task->encoder ? task->encoder->weights : task->atoms, 0, task->k);
  if (!status) status = blocks_evaluate(f, c, m);
  arena_free(&f->arena);
  free(f);
  return status;
}
