/* SPDX-License-Identifier: BSD-3-Clause
 * Threads take runs of atoms.  They compute the scores of a few atoms in all rows of the first
 * half, and sort them for each atom.  Then, for each label, the score of the chosen atom is
 * computed in the second half. */
#include "look/probing_scores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "model/detector.h"

enum { RUNS = 64, MOST_SERIES = 3 };

struct scoring {
  const struct probing_scores_task *task;
  const struct probe_series *series;
  int count;
  idx k, p;
  gidx n, half;
  float *x;                                  /* [n][p] */
  struct probe_choice *choices[MOST_SERIES]; /* [RUNS][m] */
  struct probe_work work[RUNS][MOST_SERIES];
  real *scores[MOST_SERIES]; /* [m] F1 of each label */
  int failed[RUNS];          /* status of each run */
  gidx bad[RUNS];            /* an atom of the run with a score that is not finite; -1: none */
  struct arena arena;
};

/* Buffers of a run: weights of a tile of atoms, their scores in half of the rows, and the entries
 * of one atom. */
struct buffers {
  float *tile, *scores;
  struct probe_entry *entries;
  struct arena arena;
};

static int buffers_alloc(const struct scoring *s, struct buffers *b)
{
  gidx rows = imax(s->half, s->n - s->half);
  TRY(arena_alloc(&b->arena, &b->tile, (gidx)s->p * DETECTOR_TILE, sizeof *b->tile));
  TRY(arena_alloc(&b->arena, &b->scores, rows * DETECTOR_TILE, sizeof *b->scores));
  return arena_alloc(&b->arena, &b->entries, rows, sizeof *b->entries);
}

/* b->scores[rows][DETECTOR_TILE] <- the products of rows first .. first + rows - 1 with the
 * encoder's weights of atoms atom .. atom + count - 1. */
static void tile_score(const struct scoring *s, idx atom, idx count, gidx first, gidx rows,
                       struct buffers *b)
{
  const float *weights = s->task->encoder->weights;
  memset(b->tile, 0, (size_t)s->p * DETECTOR_TILE * sizeof *b->tile);
  for (idx j = 0; j < count; j++)
    for (idx c = 0; c < s->p; c++)
      b->tile[(gidx)c * DETECTOR_TILE + j] = weights[(gidx)(atom + j) * s->p + c];
  detector_scores(s->x + first * s->p, rows, s->p, b->tile, b->scores);
}

/* b->entries <- the sorted scores of `atom`, which is atom j of the tile, in rows first .. first +
 * rows - 1.  Returns 0 if a score is not finite. */
static int entries_sort(const struct scoring *s, idx atom, idx j, gidx first, gidx rows,
                        struct buffers *b)
{
  const struct encoder *e = s->task->encoder;
  for (gidx i = 0; i < rows; i++) {
    float score = b->scores[i * DETECTOR_TILE + j] + e->bias[atom];
    if (e->rescaled && e->norm) score *= e->norm[atom];
    if (!isfinite(score)) return 0;
    b->entries[i] = (struct probe_entry){score, (idx)(first + i)};
  }
  probe_sort(b->entries, rows);
  return 1;
}

static void atom_try(struct scoring *s, int run, idx atom, const struct buffers *b)
{
  for (int i = 0; i < s->count; i++)
    probe_atom(&s->series[i], atom, b->entries, s->half, &s->work[run][i],
               s->choices[i] + (gidx)run * s->series[i].m);
}

static void run_try(void *self, gidx run)
{
  struct scoring *s = self;
  struct buffers b = {0};
  idx first = (idx)(run * s->k / RUNS), end = (idx)((run + 1) * s->k / RUNS);
  s->bad[run] = -1;
  s->failed[run] = buffers_alloc(s, &b);
  for (idx a = first; a < end && !s->failed[run] && s->half; a += DETECTOR_TILE) {
    idx count = (idx)imin(DETECTOR_TILE, end - a);
    tile_score(s, a, count, 0, s->half, &b);
    for (idx j = 0; j < count; j++) {
      if (entries_sort(s, a + j, j, 0, s->half, &b))
        atom_try(s, (int)run, a + j, &b);
      else if (s->bad[run] < 0)
        s->bad[run] = a + j;
    }
  }
  status_clear(); /* of this thread */
  arena_free(&b.arena);
}

/* Set the F1 of one label of one series; 0 if no atom was chosen. */
static void label_evaluate(struct scoring *s, int series, idx label, struct buffers *b)
{
  const struct probe *best = &s->choices[series][label].best[0];
  gidx rows = s->n - s->half;
  s->scores[series][label] = 0;
  if (best->atom < 0) return;
  tile_score(s, best->atom, 1, s->half, rows, b);
  if (entries_sort(s, best->atom, 0, s->half, rows, b))
    s->scores[series][label] =
        probe_f1(&s->series[series], label, best->threshold, b->entries, rows);
  else
    s->bad[0] = best->atom;
}

static int scoring_alloc(struct scoring *s)
{
  TRY(arena_alloc(&s->arena, &s->x, s->n * s->p, sizeof *s->x));
  for (int i = 0; i < s->count; i++) {
    idx m = s->series[i].m;
    TRY(arena_alloc(&s->arena, &s->choices[i], (gidx)RUNS * m, sizeof *s->choices[i]));
    TRY(arena_alloc(&s->arena, &s->scores[i], m, sizeof *s->scores[i]));
    for (gidx c = 0; c < (gidx)RUNS * m; c++) probe_choice_init(&s->choices[i][c]);
    for (int run = 0; run < RUNS; run++) TRY(probe_work_init(&s->work[run][i], m, &s->arena));
  }
  return OK;
}

static int rows_take(struct scoring *s)
{
  enum { PIECE = 4096 };
  const struct row_source *rows = s->task->rows;
  for (gidx first = 0; first < s->n; first += PIECE) {
    idx count = (idx)imin(PIECE, s->n - first);
    float *x = s->x + first * s->p;
    TRY(rows->read(rows->self, first, count, x));
    TRY(rows_source_check(rows, x, first, count));
    rows_center(x, count, s->p, s->task->mean);
  }
  return OK;
}

static int finite_check(const struct scoring *s)
{
  for (int run = 0; run < RUNS; run++)
    CHECK(s->bad[run] < 0, ERR_INPUT, "a score of atom %lld is not a finite float32 number",
          (long long)s->bad[run]);
  return OK;
}

static int scoring_run(struct scoring *s, real *f1)
{
  struct buffers b = {0};
  TRY(scoring_alloc(s));
  TRY(rows_take(s));
  team_run(s->task->threads, RUNS, run_try, s);
  for (int run = 0; run < RUNS; run++)
    CHECK(!s->failed[run], ERR_MEMORY, "cannot allocate the scores of %d atoms in %lld rows",
          DETECTOR_TILE, (long long)s->half);
  TRY(finite_check(s));
  int status = buffers_alloc(s, &b);
  for (int i = 0; i < s->count && !status; i++) {
    idx m = s->series[i].m;
    f1[i] = m ? 0 : nan_canonical();
    for (int run = 1; run < RUNS; run++)
      for (idx c = 0; c < m; c++)
        probe_choice_merge(&s->choices[i][c], &s->choices[i][(gidx)run * m + c]);
    for (idx c = 0; c < m; c++) {
      label_evaluate(s, i, c, &b);
      f1[i] += s->scores[i][c];
    }
    if (m) f1[i] /= m;
  }
  arena_free(&b.arena);
  TRY(status);
  return finite_check(s);
}

int probing_scores(const struct probing_scores_task *task, const struct probe_series *series,
                   int count, real *f1)
{
  struct scoring *s;
  CHECK(count <= MOST_SERIES, ERR_INTERNAL, "%d series of labels, not %d", count, MOST_SERIES);
  CHECK(task->rows->n <= INT32_MAX, ERR_INPUT,
        "'%s' has %lld rows: labels are predicted for at most %d rows", task->rows->name,
        (long long)task->rows->n, INT32_MAX);
  TRY(struct_alloc(&s, sizeof *s));
  s->task = task;
  s->series = series;
  s->count = count;
  s->k = task->encoder->k;
  s->p = task->encoder->p;
  s->n = task->rows->n;
  s->half = s->n / 2;
  int status = scoring_run(s, f1);
  arena_free(&s->arena);
  free(s);
  return status;
}
