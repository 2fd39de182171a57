/* SPDX-License-Identifier: BSD-3-Clause
 * Blocks of rows and their supports are read; threads compute each row's quality; sums are added in
 * row order. */
#include "encode/judge.h"

#include <stdlib.h>

#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "base/team.h"
#include "encode/statistics.h"
#include "model/codes.h"
#include "model/part.h"

enum { CHUNK = 64 }; /* rows of a thread's task */

struct judge {
  const struct evaluate_task *task;
  float *x;              /* [ROW_BLOCK][p] */
  idx n;                 /* rows of the block */
  struct supports block; /* supports of these rows */
  const float **vectors; /* of each entry's frame */
  gidx vectors_capacity; /* frames */
  struct row_quality *quality;
  struct statistics statistics;
  real *work; /* [2][p] */
  gidx *density;
};

static void rows_evaluate(void *self, gidx chunk)
{
  struct judge *j = self;
  const struct evaluate_task *t = j->task;
  const gidx *start = j->block.view.start;
  for (gidx r = chunk * CHUNK; r < imin((chunk + 1) * CHUNK, j->n); r++)
    j->quality[r] = quality_reference(j->x + r * t->p, j->vectors + start[r] * t->d,
                                      (idx)(start[r + 1] - start[r]), t->d, t->p,
                                      j->block.codes + start[r] * t->d);
}

/* Read the rows of a block and their supports. */
static int block_read(struct judge *j, gidx first)
{
  const struct evaluate_task *t = j->task;
  j->n = (idx)imin(t->rows->n - first, ROW_BLOCK);
  TRY(t->rows->read(t->rows->self, first, j->n, j->x));
  TRY(rows_source_check(t->rows, j->x, first, j->n));
  rows_center(j->x, j->n, t->p, t->mean);
  return supports_load(&j->block, t->supports, first, j->n, 1);
}

static int block_evaluate(struct judge *j, gidx first)
{
  const struct evaluate_task *t = j->task;
  gidx entries = j->block.view.start[j->n];
  TRY(array_reserve(&j->vectors, &j->vectors_capacity, entries * t->d + 1, sizeof *j->vectors));
  for (gidx e = 0; e < entries; e++) {
    idx atom = j->block.view.atoms[e];
    j->density[atom]++;
    for (idx m = 0; m < t->d; m++)
      j->vectors[e * t->d + m] = t->atoms + ((gidx)atom * t->d + m) * t->p;
  }
  team_run(t->threads, ceil_div(j->n, CHUNK), rows_evaluate, j);
  statistics_alone(&j->statistics, j->x, j->quality, first, j->n, j->work);
  codes_count(&j->statistics.codes, j->block.codes, entries * t->d);
  return OK;
}

static int blocks_evaluate(struct judge *j, struct comm *c, struct arena *arena, struct metrics *m)
{
  const struct evaluate_task *t = j->task;
  struct encode_part part = {.n = t->rows->n, .total = t->rows->n, .p = t->p};
  real *shift;
  TRY(arena_alloc(arena, &shift, t->p, sizeof *shift));
  TRY(arena_alloc(arena, &j->x, (gidx)ROW_BLOCK * t->p, sizeof *j->x));
  TRY(arena_alloc(arena, &j->quality, ROW_BLOCK, sizeof *j->quality));
  TRY(arena_alloc(arena, &j->density, t->k, sizeof *j->density));
  TRY(arena_alloc(arena, &j->work, 2 * (gidx)t->p, sizeof *j->work));
  TRY(statistics_init(&j->statistics, arena, c, 1, t->p, shift, 0, t->rows->n));
  j->statistics.threads = t->threads;
  for (gidx first = 0; first < t->rows->n; first += ROW_BLOCK) {
    int status = block_read(j, first);
    if (!status && first == 0) rows_shift(j->x, (idx)imin(j->n, SHIFT_ROWS), t->p, shift);
    if (!status) status = block_evaluate(j, first);
    supports_free(&j->block);
    TRY(status);
  }
  TRY(statistics_finish(&j->statistics, c, &part.sums));
  part.nonzero = j->statistics.nonzero;
  part.codes = j->statistics.codes;
  part.shift = shift;
  part.norms = j->statistics.norms;
  TRY(part_metrics(m, &part));
  metrics_density(m, j->density, t->rows->n, t->k);
  m->max_decoder_cosine = nan_canonical();
  return OK;
}

int codes_metrics(const struct evaluate_task *task, struct comm *c, struct arena *arena,
                  struct metrics *m)
{
  struct judge *j;
  TRY(struct_alloc(&j, sizeof *j));
  j->task = task;
  int status = blocks_evaluate(j, c, arena, m);
  free(j->vectors);
  free(j);
  return status;
}
