/* SPDX-License-Identifier: BSD-3-Clause
 * New atoms are the residuals of rows of the batch in its shuffled order, scaled to norm 1.  If
 * there are too few rows, or a residual is 0, random vectors are used. */
#include "find/renew.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "find/batch.h"

static const uint64_t RANDOM_ATOMS = 0x7466;
static const gidx ITEM = (gidx)sizeof(float);

int left_get(struct finder *f, gidx first, gidx n, float *out)
{
  struct active *a = &f->active;
  gidx unit = f->p * ITEM, most = f->left.bytes / unit, own_first, own;
  idx names[LEFT_ROWS];
  comm_partition(f->codes.n, f->c->size, f->c->rank, &own_first, &own);
  for (gidx at = 0, count; at < n; at += count) {
    count = imin(most, n - at);
    for (gidx i = 0; i < count; i++) {
      gidx row = first + at + i;
      names[i] = f->is_coded ? a->place[row - own_first] : (idx)row;
    }
    const struct gather_job job = {
        f->is_coded ? &a->residual : &f->x, names, count, unit, &f->left, 0};
    TRY(device_gather(&f->device, &job));
    TRY(device_get(&f->device, &f->left, 0, count * unit));
    memcpy(out + at * f->p, f->left.host, (size_t)(count * unit));
  }
  return OK;
}

/* Scale a residual to norm 1; if that is not possible, it becomes 0. */
static void left_scale(struct finder *f, float *row)
{
  for (idx c = 0; c < f->p; c++) f->wide[c] = row[c];
  memset(row, 0, (size_t)(f->p * ITEM));
  find_scale(f->wide, f->p, row);
}

int atom_is_there(const float *atom, idx p)
{
  for (idx c = 0; c < p; c++)
    if (atom[c] != 0) return 1;
  return 0;
}

void atom_draw(const struct finder *f, gidx number, float *atom)
{
  for (idx c = 0; c < f->p; c++)
    f->wide[c] = random_normal(f->task->seed, RANDOM_ATOMS,
                               (uint64_t)((f->update * f->plan.grown + number) * f->p + c));
  find_scale(f->wide, f->p, atom);
}

/* fresh[need][p] <- new atoms, from rows of the batch that were not used for new atoms before. */
static int atoms_make(struct finder *f, idx need)
{
  struct comm *c = f->c;
  gidx begin = f->taken, end = imin(f->codes.n, begin + need), first = 0, count = 0;
  for (int r = 0; r < c->size; r++) {
    gidx own_first, own;
    comm_partition(f->codes.n, c->size, r, &own_first, &own);
    gidx from = imin(imax(begin, own_first), end), to = imax(imin(end, own_first + own), from);
    f->counts[r] = (idx)(to - from);
    if (r == c->rank) first = from, count = to - from;
  }
  float *own = f->fresh + (first - begin) * f->p;
  if (!comm_failure(c)) comm_record(c, left_get(f, first, count, own));
  TRY(comm_allgather(c, own, f->counts, (size_t)(f->p * ITEM), f->fresh));
  for (gidx i = 0; i < need; i++) {
    float *atom = f->fresh + i * f->p;
    if (i < end - begin) left_scale(f, atom);
    if (i >= end - begin || !atom_is_there(atom, f->p)) atom_draw(f, i, atom);
  }
  f->taken = end;
  return OK;
}

void atom_begin(struct finder *f, idx atom, const float *from)
{
  memcpy(f->atoms + (gidx)atom * f->p, from, (size_t)(f->p * ITEM));
  f->means[atom] = 0;
  f->firing[atom] = 0;
}

/* How atoms are compared with all others; with signs = 2 also the opposite of each atom is
 * compared. */
struct comparing {
  float cosine;
  int signs; /* rows per atom: 1: the atom; 2: the atom, and then its opposite */
};

/* f->left <- n of the rows that are compared. */
static int rows_put(struct finder *f, idx atom, const struct comparing *by, gidx first, gidx n)
{
  float *rows = f->left.host;
  for (gidx i = 0; i < n; i++) {
    gidx row = first + i;
    const float *from = f->atoms + (atom + row / by->signs) * f->p;
    for (idx c = 0; c < f->p; c++) rows[i * f->p + c] = row % by->signs ? -from[c] : from[c];
  }
  return device_put(&f->device, &f->left, 0, n * f->p * ITEM);
}

/* Compare atoms first .. first + *n - 1 with all atoms, and gather the cosines on all ranks.  Ranks
 * divide these atoms like the rows of a batch.  *n is halved until there is room for the
 * results. */
static int cosines_exchange(struct finder *f, idx first, idx *n, const struct comparing *by)
{
  struct active *a = &f->active;
  struct batch_cut cut = find_cut_at(by->cosine);
  gidx own_first, own, found;
  for (;; *n = (*n + 1) / 2) {
    f->codes.n = *n * by->signs;
    comm_partition(f->codes.n, f->c->size, f->c->rank, &own_first, &own);
    if (!comm_failure(f->c)) comm_record(f->c, rows_put(f, first, by, own_first, own));
    if (!comm_failure(f->c)) comm_record(f->c, active_score(a, &f->left, 0, (idx)own));
    if (!comm_failure(f->c)) comm_record(f->c, active_cut(a, &cut, 0));
    found = comm_failure(f->c) ? 0 : a->found;
    TRY(comm_sum(f->c, &found, 1));
    if (found <= f->codes.most || *n == 1) return codes_exchange(f, 0);
  }
}

/* Of atoms first .. first + *n - 1, mark each that nearly equals a more frequent atom without a
 * mark.  With signs = 2 also mark each that nearly equals the opposite of such an atom. */
static int duplicates_mark(struct finder *f, idx first, idx *n, const struct comparing *by)
{
  TRY(cosines_exchange(f, first, n, by));
  for (idx i = 0; i < *n; i++) {
    gidx row = (gidx)i * by->signs;
    for (gidx e = f->codes.start[row]; e < f->codes.start[row + by->signs]; e++) {
      idx other = f->codes.index[e];
      if (other < first + i && !f->renew[other]) f->renew[first + i] = 1;
    }
  }
  return OK;
}

static int duplicates_find(struct finder *f, const struct comparing *by)
{
  struct active *a = &f->active;
  idx n, rows = f->codes.n, most = (idx)imax(f->left.bytes / (f->p * ITEM) / by->signs, 1);
  int relative = a->relative, status = OK;
  if (!comm_failure(f->c)) comm_record(f->c, active_atoms(a, f->atoms, f->k, NULL));
  a->relative = 0;
  for (idx at = 0; at < f->k && !status; at += n) {
    n = (idx)imin(most, f->k - at);
    status = duplicates_mark(f, at, &n, by);
    most = n;
  }
  a->relative = relative;
  f->codes.n = rows;
  return status;
}

int atoms_replace(struct finder *f)
{
  struct phase *move = &f->result->phases[FIND_MOVE];
  idx need = 0, i = 0;
  phase_begin(move);
  memset(f->renew, 0, (size_t)f->k);
  const struct comparing twins = {(float)f->task->recipe.twin, 1};
  if (twins.cosine < 1) TRY(duplicates_find(f, &twins));
  for (idx a = 0; a < f->k; a++)
    need += f->renew[a] |= find_is_useless(f->firing[a], f->fired_rows);
  if (need) TRY(atoms_make(f, need));
  for (idx a = 0; a < f->k; a++)
    if (f->renew[a]) atom_begin(f, a, f->fresh + (gidx)i++ * f->p);
  f->replaced += need;
  phase_end(move, 0);
  return OK;
}

/* Add to the offset the mean contribution to rows of the atoms that are dropped, which f->renew
 * marks. */
static int offset_keep(struct finder *f)
{
  float *offset = f->offset.host;
  for (idx c = 0; c < f->p; c++) {
    real acc = offset[c];
    for (idx a = 0; a < f->k; a++) {
      real share = (real)f->means[a] * ((real)f->firing[a] / (real)f->fired_rows);
      if (f->renew[a]) acc = fma(share, f->atoms[(gidx)a * f->p + c], acc);
    }
    offset[c] = (float)acc;
    f->described[c] = (f->mean ? f->mean[c] : 0) + (real)offset[c];
  }
  return device_put(&f->device, &f->offset, 0, f->p * ITEM);
}

int atoms_keep(struct finder *f)
{
  idx keep = (idx)imin(f->plan.k, f->k), n = 0, to = 0;
  gidx p = f->p;
  for (idx a = 0; a < f->k; a++) f->renew[a] = find_is_useless(f->firing[a], f->fired_rows);
  const struct comparing near = {(float)f->task->recipe.apart, 2};
  if (keep < f->k) TRY(duplicates_find(f, &near));
  for (idx a = 0; a < f->k; a++) n += !f->renew[a];
  for (idx a = 0; a < f->k && n < keep; a++)
    if (f->renew[a]) f->renew[a] = 0, n++;
  for (idx a = 0, left = keep; a < f->k; a++)
    if (!f->renew[a]) f->renew[a] = left-- <= 0;
  if (!comm_failure(f->c)) comm_record(f->c, offset_keep(f));
  for (idx a = 0; a < f->k && to < keep; a++) {
    if (f->renew[a]) continue;
    memmove(f->atoms + to * p, f->atoms + a * p, (size_t)(p * ITEM));
    f->means[to] = f->means[a];
    f->firing[to++] = f->firing[a];
  }
  f->k = keep;
  return OK;
}
