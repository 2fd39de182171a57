/* SPDX-License-Identifier: BSD-3-Clause
 * Rows are read once; a few of them at a time pass the encoder's matrix. */
#include "train/judge.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "base/team.h"
#include "model/codes.h"
#include "model/encoder.h"
#include "model/identity.h"
#include "refit/state.h"
#include "refit/sums.h"

struct judge_work {      /* of a thread */
  float *scores;         /* [SCORE_ROWS][scores_width()] */
  idx *support;          /* [s] */
  float *codes;          /* [s] */
  const float **vectors; /* [s] */
};

/* What threads share. */
struct judging {
  struct train_judge *j;
  struct encoder encoder;
  const float *atoms; /* [k][p] */
};

int train_judge_alloc(struct train_judge *j, struct arena *a)
{
  gidx n = refit_rows_share(j->rows->n, j->c->size, j->c->rank, &j->first);
  if (j->rows->n == 0) return OK;
  CHECK(n <= INT32_MAX, ERR_MEMORY, "%lld rows a rank to judge by are too many", (long long)n);
  j->n = (idx)n;
  TRY(arena_alloc(a, &j->x, n * j->p, sizeof *j->x));
  TRY(arena_alloc(a, &j->quality, n, sizeof *j->quality));
  TRY(arena_alloc(a, &j->bias, j->k, sizeof *j->bias));
  TRY(scores_alloc(&j->matrix, a, j->k, j->p));
  TRY(arena_alloc(a, &j->work, j->threads, sizeof *j->work));
  for (int t = 0; t < j->threads; t++) {
    struct judge_work none = {0}, *w = j->work ? &j->work[t] : &none; /* a dry arena has none */
    TRY(arena_alloc(a, &w->scores, SCORE_ROWS * scores_width(&j->matrix), sizeof *w->scores));
    TRY(arena_alloc(a, &w->support, j->s, sizeof *w->support));
    TRY(arena_alloc(a, &w->codes, j->s, sizeof *w->codes));
    TRY(arena_alloc(a, &w->vectors, j->s, sizeof *w->vectors));
  }
  return OK;
}

int train_judge_read(struct train_judge *j, const real *mean)
{
  uint64_t terms = 0;
  struct comm *c = j->c;
  if (j->rows->n == 0) return OK;
  TRY(comm_agree_at(c, refit_rows_load(j->rows, mean, j->first, j->n, j->threads, j->x, &terms),
                    j->first));
  gidx sum = (gidx)terms;
  TRY(comm_sum(c, &sum, 1));
  j->hash = content_hash((uint64_t)sum, j->rows->n, j->p, 1);
  TRY(refit_tss(c, j->rows->n, j->x, j->p, &j->tss));
  int varies = c->rank || j->tss > 0;
  return comm_agree(c, varies
                           ? OK
                           : status_fail(ERR_INPUT, __FILE__, __LINE__,
                                         "the held-out rows of '%s' do not vary: their explained "
                                         "variance is not defined",
                                         j->rows->name));
}

static void row_judge(const struct judging *g, struct judge_work *w, float *scores, idx row)
{
  struct train_judge *j = g->j;
  encoder_finish(&g->encoder, scores);
  idx n = encoder_select(&g->encoder, scores, w->support, w->codes);
  for (idx i = 0; i < n; i++) w->vectors[i] = g->atoms + (gidx)w->support[i] * j->p;
  j->quality[row] = quality_reference(j->x + (gidx)row * j->p, w->vectors, n, 1, j->p, w->codes);
}

static void share_judge(void *self, gidx thread)
{
  const struct judging *g = self;
  struct train_judge *j = g->j;
  struct judge_work *w = &j->work[thread];
  gidx end = (thread + 1) * j->n / j->threads;
  for (gidx first = thread * j->n / j->threads; first < end; first += SCORE_ROWS) {
    idx n = (idx)imin(end - first, SCORE_ROWS);
    scores_products(&j->matrix, j->x + first * j->p, n, w->scores);
    for (idx r = 0; r < n; r++)
      row_judge(g, w, w->scores + r * scores_width(&j->matrix), (idx)(first + r));
  }
}

int train_judge_run(struct train_judge *j, const struct train_state *state, int scale,
                    real *explained)
{
  *explained = nan_canonical();
  if (j->rows->n == 0) return OK;
  for (idx a = 0; a < j->k; a++) j->bias[a] = ldexpf(state->w[TRAIN_BIAS][a], -scale);
  struct judging g = {
      .j = j,
      .encoder =
          {.kind = ENCODER_TOPK, .k = j->k, .p = j->p, .top = j->s, .centered = 1, .bias = j->bias},
      .atoms = state->w[TRAIN_DECODER]};
  scores_put(&j->matrix, state->w[TRAIN_ENCODER], 0, j->k);
  team_run(j->threads, j->threads, share_judge, &g);
  struct coded coded = {.n = j->n, .first = j->first, .quality = {.host = j->quality}};
  struct metrics m = {.n = j->rows->n, .p = j->p};
  TRY(coded_metrics(&coded, j->c, j->tss, &m));
  if (j->c->rank == 0) *explained = m.explained_variance;
  return comm_broadcast(j->c, explained, 1, sizeof *explained);
}
