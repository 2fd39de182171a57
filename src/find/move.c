/* SPDX-License-Identifier: BSD-3-Clause
 * Each rank moves its columns of all atoms, block after block, by products of dense matrices; then
 * all have all columns, and scale the atoms. */
#include "find/move.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"

static const gidx REAL = (gidx)sizeof(real);

/* Every rank's rows of the Gram matrix go to all hosts; own columns of the target to its own. */
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
    comm_share(k, c->size, r, &first, &count);
    f->counts[r] = (idx)count;
  }
  real *gram = s->gram.host;
  return comm_allgather(c, gram + s->first * k, f->counts, (size_t)(k * REAL), gram);
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

/* The block's rows of moved[k][columns] <- what its atoms would be by themselves, held where they
 * are. */
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

/* panel[m][first] <- the block's part of the Gram matrix with the atoms before it, square[m][m] its
 * own, lower triangle, with the ridge. */
static void matrices_fill(const struct finder *f, idx first, idx end)
{
  const struct find_shares *s = &f->sums;
  const struct find_sums sums = sums_view(f);
  gidx m = end - first;
  const idx *order = f->order;
  real *square = s->square.host;
  memset(square, 0, (size_t)(m * m * REAL));
  for (idx i = 0; i < m; i++) {
    idx atom = order[first + i];
    const real *gram = sums.gram + (gidx)atom * (f->k + 1);
    real *panel = (real *)s->panel.host + (gidx)i * first;
    for (idx b = 0; b < first; b++) panel[b] = find_gram(&sums, gram, atom, order[b]);
    for (idx j = 0; j <= i; j++) square[i + j * m] = find_gram(&sums, gram, atom, order[first + j]);
    square[i + i * m] += sums.ridge;
  }
}

/* What the blocks before it describe goes off the block's sides. */
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

/* The block <- (L L')^-1 times it, by Z = L^-1. */
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

/* Where its matrix has no factor the block stays. */
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
  sides_begin(f, first, end);
  matrices_fill(f, first, end);
  TRY(device_put(&f->device, &s->moved, first * columns * REAL, m * columns * REAL));
  if (first) TRY(device_put(&f->device, &s->panel, 0, m * first * REAL));
  TRY(device_put(&f->device, &s->square, 0, m * m * REAL));
  TRY(sides_reduce(f, first, end));
  TRY(dense_cholesky(&s->dense, s->square.device, (idx)m, m, s->pivot, &good));
  return good < m ? block_stay(f, first, end) : block_solve(f, first, end);
}

/* Own columns. */
static int blocks_move(struct finder *f)
{
  struct find_shares *s = &f->sums;
  struct find_blocks blocks;
  if (s->begin == s->end) return OK;
  find_plan_blocks(&f->plan, &f->step, &blocks);
  for (int b = 0; b < blocks.count; b++)
    TRY(block_move(f, b ? blocks.end[b - 1] : 0, blocks.end[b]));
  return device_get(&f->device, &s->moved, 0, f->k * (gidx)(s->end - s->begin) * REAL);
}

/* all[k][p] <- own columns of all ranks. */
static int columns_gather(struct finder *f)
{
  struct find_shares *s = &f->sums;
  struct comm *c = f->c;
  gidx begin, columns;
  for (int r = 0; r < c->size; r++) {
    comm_share(f->p, c->size, r, &begin, &columns);
    f->counts[r] = (idx)columns;
  }
  TRY(comm_allgather(c, s->moved.host, f->counts, (size_t)(f->k * REAL), s->gathered));
  const real *from = s->gathered;
  for (int r = 0; r < c->size; r++) {
    comm_share(f->p, c->size, r, &begin, &columns);
    for (idx a = 0; a < f->k; a++, from += columns)
      memcpy(s->all + (gidx)a * f->p + begin, from, (size_t)(columns * REAL));
  }
  return OK;
}

/* The offset takes what the atoms, as they moved, leave to the intercept. */
static void offset_take(struct finder *f)
{
  const struct find_shares *s = &f->sums;
  idx k = f->k, p = f->p;
  const real *means = (const real *)s->gram.host + (gidx)k * (k + 1);
  float *offset = f->offset.host;
  for (idx c = 0; c < p; c++) {
    real acc = s->intercept[c];
    for (idx i = 0; i < k; i++) acc = fma(-s->all[(gidx)i * p + c], means[f->order[i]], acc);
    offset[c] = (float)((real)offset[c] + acc / means[k]);
    f->described[c] = (f->mean ? f->mean[c] : 0) + (real)offset[c];
  }
}

/* Atoms, means and counts in the new order; an atom that no row had stays. */
static void atoms_take(struct finder *f)
{
  gidx p = f->p;
  memcpy(f->before, f->atoms, (size_t)(f->k * p) * sizeof *f->atoms);
  for (idx i = 0; i < f->k; i++) {
    idx a = f->order[i];
    memcpy(f->atoms + i * p, f->before + a * p, (size_t)p * sizeof *f->atoms);
    if (f->firing[a] > 0) find_scale(f->sums.all + i * p, f->p, f->atoms + i * p);
    f->means[i] = f->firing[a] > 0 ? (float)(f->code_sums[a] / (real)f->firing[a]) : 0;
    f->ordered[i] = f->firing[a];
  }
  memcpy(f->firing, f->ordered, (size_t)f->k * sizeof *f->firing);
}

/* intercept[p] <- own columns of all ranks. */
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
  offset_take(f);
  if (!comm_failure(f->c))
    comm_record(f->c, device_put(&f->device, &f->offset, 0, f->p * (gidx)sizeof(float)));
  phase_end(move, 0);
  return OK;
}
