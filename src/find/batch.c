/* SPDX-License-Identifier: BSD-3-Clause
 * Every rank's device has all rows of a batch, and finds the codes of this rank's rows; the codes
 * go to all ranks. */
#include "find/batch.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "device/train.h"
#include "encode/active_nested.h"
#include "model/find_update.h"
#include "train/cut.h"

int batch_atoms(struct finder *f)
{
  return active_atoms(&f->active, f->atoms, f->k, f->means);
}

int batch_read(struct finder *f, gidx number)
{
  struct phase *read = &f->result->phases[FIND_READ];
  gidx epoch, first;
  find_plan_batch(&f->plan, number, &epoch, &first, &f->codes.n);
  f->taken = 0;
  f->is_coded = 0;
  phase_begin(read);
  TRY(batches_take(&f->batches, epoch, first, f->codes.n, &f->x));
  if (!comm_failure(f->c))
    comm_record(f->c,
                device_train_offset(&f->device, f->x.device, f->codes.n, f->p, f->offset.device));
  phase_end(read, 0);
  return OK;
}

/* Send the weights of this rank's rows to all ranks. */
static int weights_exchange(struct finder *f)
{
  struct active *a = &f->active;
  real *weight = f->codes.weight;
  gidx first, own;
  comm_partition(f->codes.n, f->c->size, f->c->rank, &first, &own);
  const real *squares = f->squares.host;
  for (gidx i = 0; i < own; i++)
    weight[first + i] =
        find_row_weight(&f->task->recipe, &f->step, squares[2 * a->place[i] + 1], f->square);
  return comm_allgather(f->c, weight + first, f->counts, sizeof *weight, weight);
}

/* Find the squared norms of the residuals of this rank's rows: that of row i is at
 * [a->place[i]][1].  a->sorted is not in use here, and serves as work space. */
static int squares_find(struct finder *f)
{
  struct active *a = &f->active;
  const struct train_errors_job job = {.error = a->sorted.device,
                                       .x = a->residual.device,
                                       .squares = f->squares.device,
                                       .n = a->n,
                                       .p = f->p};
  if (a->n) TRY(device_train_errors(&f->device, &job));
  return device_get(&f->device, &f->squares, 0, 2 * a->n * (gidx)sizeof(real));
}

static int scores_count(void *self, const struct batch_cut *cut, gidx *counts)
{
  struct finder *f = self;
  return active_count(&f->active, cut, counts);
}

/* Score this rank's rows.  look 0: for the first choice, from the rows; otherwise from the
 * residuals of the choice before. */
static int rows_score(struct finder *f, int look)
{
  struct phase *scores = &f->result->phases[FIND_SCORES];
  gidx first, own;
  comm_partition(f->codes.n, f->c->size, f->c->rank, &first, &own);
  phase_begin(scores);
  TRY(look ? active_again(&f->active) : active_score(&f->active, &f->x, first, (idx)own));
  phase_end(scores, (double)own * f->k * f->p);
  return OK;
}

/* Cut the scores.  Each rank has room for all entries of a batch: its own rows may have all of
 * them, and codes must not depend on which rank has a row. */
static int rows_cut(struct active *a, const struct batch_cut *cut, gidx ties)
{
  TRY(active_cut(a, cut, ties));
  CHECK(a->found <= a->entries, ERR_INTERNAL, "room for %lld entries of %d rows, which have %lld",
        (long long)a->entries, a->n, (long long)a->found);
  return OK;
}

/* Choose the active atoms of all ranks' rows, and solve their codes. */
static int rows_choose(struct finder *f, const struct batch_choice *choice, int look)
{
  struct phase *choose = &f->result->phases[FIND_CHOOSE], *codes = &f->result->phases[FIND_CODES];
  struct batch_cut cut = batch_cut_begin(batch_most(choice->l0, f->codes.n));
  const struct cut_task task = {f->c, f, scores_count, f->ties};
  gidx ties;
  phase_begin(choose);
  TRY(cut_agree(&task, &cut, &ties));
  if (!comm_failure(f->c)) comm_record(f->c, rows_cut(&f->active, &cut, ties));
  phase_end(choose, 0);
  choice->threshold[look] = batch_cut_value(&cut);
  phase_begin(codes);
  if (!comm_failure(f->c)) comm_record(f->c, active_solve(&f->active, choice->rho));
  phase_end(codes, 0);
  return OK;
}

/* Send the codes of this rank's rows to all ranks. */
int codes_exchange(struct finder *f, int with_weights)
{
  struct batch_codes *b = &f->codes;
  const struct active *a = &f->active;
  struct comm *c = f->c;
  gidx first, own;
  for (int r = 0; r < c->size; r++) {
    comm_partition(b->n, c->size, r, &first, &own);
    f->counts[r] = (idx)own;
  }
  comm_partition(b->n, c->size, c->rank, &first, &own);
  for (gidx i = 0; i < own; i++) b->lengths[first + i] = (idx)(a->start[i + 1] - a->start[i]);
  TRY(comm_allgather(c, b->lengths + first, f->counts, sizeof *b->lengths, b->lengths));
  if (with_weights) TRY(weights_exchange(f));
  b->start[0] = 0;
  for (idx i = 0; i < b->n; i++) b->start[i + 1] = b->start[i] + b->lengths[i];
  for (int r = 0; r < c->size; r++) {
    comm_partition(b->n, c->size, r, &first, &own);
    f->counts[r] = (idx)(b->start[first + own] - b->start[first]);
  }
  TRY(comm_allgather(c, a->index, f->counts, sizeof *b->index, b->index));
  return comm_allgather(c, a->code, f->counts, sizeof *b->code, b->code);
}

/* Send the solved codes of the batch to all ranks. */
static int batch_exchange(struct finder *f)
{
  struct phase *share = &f->result->phases[FIND_SHARE];
  phase_begin(share);
  if (!comm_failure(f->c)) comm_record(f->c, squares_find(f));
  TRY(codes_exchange(f, 1));
  f->is_coded = 1;
  phase_end(share, 0);
  return OK;
}

int batch_code(struct finder *f, const struct batch_choice *choice)
{
  for (int look = 0; look <= choice->looks; look++) {
    if (!comm_failure(f->c)) comm_record(f->c, rows_score(f, look));
    TRY(rows_choose(f, choice, look));
  }
  return batch_exchange(f);
}

static struct active_blocks blocks_of(const struct finder *f, const struct batch_choice *choice,
                                      struct find_blocks *blocks)
{
  find_plan_blocks(f->k, blocks);
  return (struct active_blocks){blocks, choice->looks, choice->threshold, choice->rho};
}

/* *found <- the number of atoms that a pass chooses in the first rows of the batch, summed over all
 * ranks. */
static int sample_count(struct finder *f, const struct active_blocks *by, int look, gidx *found)
{
  gidx first, own;
  comm_partition(imin(f->codes.n, NESTED_SAMPLE), f->c->size, f->c->rank, &first, &own);
  *found = 0;
  if (!comm_failure(f->c))
    comm_record(f->c, active_nested_pass(&f->active, &f->x, first, (idx)own, by, look, found));
  return comm_sum(f->c, found, 1);
}

/* Find the threshold of a pass by halving an interval.  The next pass continues from the result of
 * this one. */
static int threshold_find(struct finder *f, const struct batch_choice *choice,
                          const struct active_blocks *by, int look)
{
  gidx found, most = batch_most(choice->l0, (idx)imin(f->codes.n, NESTED_SAMPLE));
  float low = 0, high = nested_top(f->task->recipe.relative, f->square);
  for (int i = 0; i < NESTED_HALVINGS; i++) {
    float middle = choice->threshold[look] = nested_middle(low, high);
    TRY(sample_count(f, by, look, &found));
    if (found > most)
      low = middle;
    else
      high = middle;
  }
  choice->threshold[look] = high;
  if (look < choice->looks) TRY(sample_count(f, by, look, &found));
  active_nested_keep(&f->active);
  return OK;
}

int batch_thresholds(struct finder *f, const struct batch_choice *choice)
{
  struct phase *choose = &f->result->phases[FIND_CHOOSE];
  struct find_blocks blocks;
  const struct active_blocks by = blocks_of(f, choice, &blocks);
  phase_begin(choose);
  for (int look = 0; look <= choice->looks; look++) TRY(threshold_find(f, choice, &by, look));
  phase_end(choose, 0);
  return OK;
}

int batch_code_nested(struct finder *f, const struct batch_choice *choice)
{
  struct phase *codes = &f->result->phases[FIND_CODES];
  struct find_blocks blocks;
  const struct active_blocks by = blocks_of(f, choice, &blocks);
  gidx first, own;
  comm_partition(f->codes.n, f->c->size, f->c->rank, &first, &own);
  phase_begin(codes);
  if (!comm_failure(f->c))
    comm_record(f->c, active_nested(&f->active, &f->x, first, (idx)own, &by));
  phase_end(codes, 0);
  return batch_exchange(f);
}
