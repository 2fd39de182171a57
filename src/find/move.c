/* SPDX-License-Identifier: BSD-3-Clause
 * Each rank moves its columns of all atoms, block after block, by products of dense matrices.  Then
 * all ranks gather all columns, and scale the atoms. */
#include "find/move.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/team.h"

static const gidx REAL = (gidx)sizeof(real);

/* Copy the intercept's row of the Gram matrix from its column, which has the same bits.  A GPU does
 * not sum this row: all rows of the batch have the intercept, so each sum would be a long chain. */
static void intercept_fill(struct finder *f)
{
  gidx k = f->k, stride = k + 1;
  real *gram = f->sums.gram.host, *row = gram + k * stride;
  for (gidx a = 0; a < k; a++) row[a] = gram[a * stride + k];
  row[k] = f->sums.weights;
}

/* Gather all rows of the Gram matrix on the host of every rank, and copy this rank's columns of the
 * target to its host. */
static int sums_fetch(struct finder *f)
{
  struct find_shares *s = &f->sums;
  struct comm *c = f->c;
  gidx k = f->k + 1, first, count;
  if (!comm_failure(c))
    comm_record(c, device_get(&f->device, &s->gram, s->first * k * REAL, s->count * k * REAL));
  if (!comm_failure(c))
    comm_record(c, device_get(&f->device, &s->target, 0, k * (s->end - s->begin) * REAL));
  for (int r = 0; r < c->size; r++) {
    comm_partition(k, c->size, r, &first, &count);
    f->counts[r] = (idx)count;
  }
  real *gram = s->gram.host;
  TRY(comm_allgather(c, gram + s->first * k, f->counts, (size_t)(k * REAL), gram));
  intercept_fill(f);
  return OK;
}

static struct find_sums sums_view(const struct finder *f)
{
  const struct find_shares *s = &f->sums;
  return (struct find_sums){.k = f->k,
                            .p = s->end - s->begin,
                            .gram = s->gram.host,
                            .target = s->target.host,
                            .rows = f->fired_rows,
                            .ridge = f->ridge};
}

/* Atoms of a block, first .. end - 1 of the order; a thread handles BAND of them at a time. */
enum { BAND = 16 };
struct block_filling {
  const struct finder *f;
  idx first, end;
};

/* The block's rows of moved[k][columns] <- its right sides: the target plus the ridge times the
 * present atoms. */
static void sides_begin(const struct finder *f, idx first, idx end)
{
  const struct find_shares *s = &f->sums;
  const struct find_sums sums = sums_view(f);
  gidx columns = sums.p;
  const real *means = sums.target + f->k * columns;
  for (idx i = first; i < end; i++) {
    const real *target = sums.target + f->order[i] * columns;
    const float *atom = f->atoms + (gidx)f->order[i] * f->p + s->begin;
    real *to = (real *)s->moved.host + i * columns;
    for (gidx c = 0; c < columns; c++)
      to[c] = fma(sums.ridge, (real)atom[c], find_target(&sums, f->order[i], target[c], means[c]));
  }
}

/* Rows i .. end - 1 of panel[m][first] <- the Gram matrix between the block and the atoms before
 * it. */
static void panel_fill(const struct block_filling *b, const struct find_sums *sums, idx i, idx end)
{
  const idx *order = b->f->order;
  for (; i < end; i++) {
    idx atom = order[b->first + i];
    const real *gram = sums->gram + (gidx)atom * (sums->k + 1);
    real *panel = (real *)b->f->sums.panel.host + (gidx)i * b->first;
    for (idx j = 0; j < b->first; j++) panel[j] = find_gram(sums, gram, atom, order[j]);
  }
}

/* Rows begin .. end - 1 of square[m][m] <- the block's Gram matrix, lower triangle, with the ridge.
 * It is stored column by column, so the outer loop is over columns. */
static void square_fill(const struct block_filling *b, const struct find_sums *sums, idx begin,
                        idx end)
{
  const idx *order = b->f->order + b->first;
  gidx m = b->end - b->first;
  for (idx j = 0; j < m; j++) {
    real *square = (real *)b->f->sums.square.host + j * m;
    for (idx i = begin; i < end; i++)
      square[i] =
          j <= i ? find_gram(sums, sums->gram + (gidx)order[i] * (sums->k + 1), order[i], order[j])
                 : 0;
    if (j >= begin && j < end) square[j] += sums->ridge;
  }
}

static void band_fill(void *self, gidx band)
{
  const struct block_filling *b = self;
  const struct find_sums sums = sums_view(b->f);
  idx begin = (idx)band * BAND, end = (idx)imin(begin + BAND, b->end - b->first);
  sides_begin(b->f, b->first + begin, b->first + end);
  panel_fill(b, &sums, begin, end);
  square_fill(b, &sums, begin, end);
}

/* Subtract from the block's right sides the contributions of the atoms in the blocks before it. */
static int sides_reduce(struct finder *f, idx first, idx end)
{
  struct find_shares *s = &f->sums;
  gidx columns = s->end - s->begin;
  real *moved = s->moved.device;
  const struct dense_product product = {
      .a = {.at = moved, .row = 1, .depth = columns},
      .b = {.at = s->panel.device, .row = first, .depth = 1, .negative = 1},
      .row_end = (idx)columns,
      .column_end = end - first,
      .depth_end = first,
      .c = moved + first * columns,
      .stride = columns};
  return first ? dense_product(&s->dense, &product) : OK;
}

/* The block's rows of moved <- (L L')^-1 times these rows, computed as Z' (Z rows) with Z = L^-1.
 * s->square holds L, the Cholesky factor of the block's matrix. */
static int block_solve(struct finder *f, idx first, idx end)
{
  struct find_shares *s = &f->sums;
  gidx columns = s->end - s->begin, m = end - first;
  real *block = (real *)s->moved.device + first * columns, *half = s->half.device;
  struct dense_product down = {.a = {.at = block, .row = 1, .depth = columns},
                               .b = {.at = s->square.device, .row = 1, .depth = m},
                               .row_end = (idx)columns,
                               .column_end = (idx)m,
                               .depth_end = (idx)m,
                               .c = half,
                               .stride = columns};
  struct dense_product up = down;
  up.a.at = half;
  up.b = (struct dense_operand){.at = s->square.device, .row = m, .depth = 1, .is_triangular = 1};
  up.c = block;
  TRY(dense_inverse(&s->dense, s->square.device, (idx)m, m));
  TRY(device_clear(&f->device, &s->half, 0, m * columns * REAL));
  TRY(dense_product(&s->dense, &down));
  TRY(device_clear(&f->device, &s->moved, first * columns * REAL, m * columns * REAL));
  return dense_product(&s->dense, &up);
}

/* If the block's matrix has no Cholesky factor, its atoms do not move. */
static int block_stay(struct finder *f, idx first, idx end)
{
  struct find_shares *s = &f->sums;
  gidx columns = s->end - s->begin;
  for (idx i = first; i < end; i++)
    for (gidx c = 0; c < columns; c++)
      ((real *)s->moved.host)[i * columns + c] = f->atoms[(gidx)f->order[i] * f->p + s->begin + c];
  return device_put(&f->device, &s->moved, first * columns * REAL, (end - first) * columns * REAL);
}

static int block_move(struct finder *f, idx first, idx end)
{
  struct find_shares *s = &f->sums;
  gidx columns = s->end - s->begin, m = end - first;
  idx good;
  struct block_filling filling = {f, first, end};
  team_run(f->task->threads, ceil_div(m, BAND), band_fill, &filling);
  TRY(device_put(&f->device, &s->moved, first * columns * REAL, m * columns * REAL));
  if (first) TRY(device_put(&f->device, &s->panel, 0, m * first * REAL));
  TRY(device_put(&f->device, &s->square, 0, m * m * REAL));
  TRY(sides_reduce(f, first, end));
  TRY(dense_cholesky(&s->dense, s->square.device, (idx)m, m, s->pivot, &good));
  return good < m ? block_stay(f, first, end) : block_solve(f, first, end);
}

/* Move this rank's columns, block after block. */
static int blocks_move(struct finder *f)
{
  struct find_shares *s = &f->sums;
  struct find_blocks blocks;
  if (s->begin == s->end) return OK;
  find_plan_blocks(f->k, &blocks);
  if (f->step.is_last) blocks = (struct find_blocks){.count = 1, .end = {f->k}};
  for (int b = 0; b < blocks.count; b++)
    TRY(block_move(f, b ? blocks.end[b - 1] : 0, blocks.end[b]));
  return device_get(&f->device, &s->moved, 0, f->k * (gidx)(s->end - s->begin) * REAL);
}

/* all[k][p] <- the columns of all ranks. */
static int columns_gather(struct finder *f)
{
  struct find_shares *s = &f->sums;
  struct comm *c = f->c;
  gidx begin, columns;
  for (int r = 0; r < c->size; r++) {
    comm_partition(f->p, c->size, r, &begin, &columns);
    f->counts[r] = (idx)columns;
  }
  TRY(comm_allgather(c, s->moved.host, f->counts, (size_t)(f->k * REAL), s->gathered));
  const real *from = s->gathered;
  for (int r = 0; r < c->size; r++) {
    comm_partition(f->p, c->size, r, &begin, &columns);
    for (idx a = 0; a < f->k; a++, from += columns)
      memcpy(s->all + (gidx)a * f->p + begin, from, (size_t)(columns * REAL));
  }
  return OK;
}

/* Add to the offset the intercept that the moved atoms leave, for a part of the columns. */
static void offset_take(void *self, gidx part)
{
  struct finder *f = self;
  const struct find_shares *s = &f->sums;
  idx k = f->k, p = f->p, begin = (idx)part * BAND, end = (idx)imin(begin + BAND, p);
  const real *means = (const real *)s->gram.host + (gidx)k * (k + 1);
  float *offset = f->offset.host;
  real acc[BAND];
  for (idx c = begin; c < end; c++) acc[c - begin] = s->intercept[c];
  for (idx i = 0; i < k; i++) {
    const real *atom = s->all + (gidx)i * p;
    real mean = means[f->order[i]];
    for (idx c = begin; c < end; c++) acc[c - begin] = fma(-atom[c], mean, acc[c - begin]);
  }
  for (idx c = begin; c < end; c++) {
    offset[c] = (float)((real)offset[c] + acc[c - begin] / means[k]);
    f->described[c] = (f->mean ? f->mean[c] : 0) + (real)offset[c];
  }
}

/* Set atom i of the new order. */
static void atom_take(void *self, gidx i)
{
  struct finder *f = self;
  gidx p = f->p, a = f->order[i];
  memcpy(f->atoms + i * p, f->before + a * p, (size_t)p * sizeof *f->atoms);
  if (f->firing[a] > 0) find_scale(f->sums.all + i * p, f->p, f->atoms + i * p);
}

/* Put atoms, means and counts in the new order; an atom that no row used stays as it is. */
static void atoms_take(struct finder *f)
{
  memcpy(f->before, f->atoms, (size_t)((gidx)f->k * f->p) * sizeof *f->atoms);
  team_run(f->task->threads, f->k, atom_take, f);
  for (idx i = 0; i < f->k; i++) {
    idx a = f->order[i];
    f->means[i] = f->firing[a] > 0 ? (float)(f->code_sums[a] / (real)f->firing[a]) : 0;
    f->ordered[i] = f->firing[a];
  }
  memcpy(f->firing, f->ordered, (size_t)f->k * sizeof *f->firing);
}

/* intercept[p] <- the columns of all ranks. */
static int intercept_gather(struct finder *f)
{
  const struct find_shares *s = &f->sums;
  const real *own = (const real *)s->target.host + (gidx)f->k * (s->end - s->begin);
  return comm_allgather(f->c, own, f->counts, sizeof *own, s->intercept);
}

int atoms_move(struct finder *f)
{
  struct phase *move = &f->result->phases[FIND_MOVE];
  phase_begin(move);
  TRY(sums_fetch(f));
  if (!comm_failure(f->c)) comm_record(f->c, find_order(f->firing, f->k, f->order));
  if (!comm_failure(f->c)) comm_record(f->c, blocks_move(f));
  TRY(columns_gather(f));
  TRY(intercept_gather(f));
  atoms_take(f);
  team_run(f->task->threads, ceil_div(f->p, BAND), offset_take, f);
  if (!comm_failure(f->c))
    comm_record(f->c, device_put(&f->device, &f->offset, 0, f->p * (gidx)sizeof(float)));
  phase_end(move, 0);
  return OK;
}
