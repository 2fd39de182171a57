/* SPDX-License-Identifier: BSD-3-Clause
 * A rank adds the rows of all ranks to its own rows of the Gram matrix and its own columns of the
 * target.  Then it updates its own columns of the atoms.  If supports differ in length (ragged),
 * each sum block (ROW_BLOCK rows, N.0) in turn is sent to all ranks. */
#include "fit/update.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "model/state.h"

enum { ROWS_AT_ONCE = 1 << 20 }; /* rows of one call, with several ranks */

/* *begin, *count <- the columns of a rank. */
static void columns_partition(const struct update *u, int rank, idx *begin, idx *count)
{
  gidx first, n;
  comm_partition(u->f->p, u->f->c->size, rank, &first, &n);
  *begin = (idx)first;
  *count = (idx)n;
}

/* The buffers of a sum block that is sent to all ranks. */
static int block_alloc(struct update *u)
{
  gidx s = u->f->s, p = u->f->p;
  TRY(buffer_alloc(u->device, &u->slots, ROW_BLOCK * s * (gidx)sizeof(idx)));
  TRY(buffer_alloc(u->device, &u->codes, ROW_BLOCK * s * (gidx)sizeof(float)));
  return buffer_alloc(u->device, &u->rows, ROW_BLOCK * p * (gidx)sizeof(float));
}

static int is_shared(const struct update *u)
{
  return u->f->task && u->f->task->shares_gram;
}

/* Does each rank have the data of all rows (all_rows.h)? */
static int has_all(const struct update *u)
{
  return u->f->c->size > 1 && !u->is_ragged;
}

/* Sums that several ranks gather need a host side. */
static int buffers_alloc(struct update *u, gidx columns)
{
  const struct refit_state *f = u->f;
  struct device *dev = u->device;
  gidx k = f->k, values = k * columns * (gidx)sizeof(real);
  int many = f->c->size > 1;
  int (*alloc)(struct device *, struct buffer *, gidx) = many ? buffer_alloc : buffer_alloc_device;
  TRY(alloc(dev, &u->target, values));
  TRY(buffer_alloc(dev, &u->atoms, k * imax(columns, 1) * (gidx)sizeof(real)));
  TRY(buffer_alloc(dev, &u->diagonal, k * (gidx)sizeof(real)));
  TRY(buffer_alloc(dev, &u->forget, k));
  if (!u->is_ragged) TRY(buffer_alloc(dev, &u->energy, f->n * (gidx)sizeof(real)));
  if (u->is_ragged) TRY(block_alloc(u));
  idx rows = (idx)imin(f->total, u->is_ragged ? ROW_BLOCK : many ? ROWS_AT_ONCE : INT32_MAX);
  return buffer_alloc_device(dev, &u->work,
                             device_normal_bytes(dev, rows, f->s, f->k, (idx)columns));
}

/* The buffers in which a sum block is padded. */
static int ragged_alloc(struct update *u)
{
  gidx entries = (gidx)ROW_BLOCK * u->f->s;
  TRY(arena_alloc(&u->arena, &u->padded, entries, sizeof *u->padded));
  TRY(arena_alloc(&u->arena, &u->padded_codes, entries, sizeof *u->padded_codes));
  return arena_alloc(&u->arena, &u->stamp, u->f->k, sizeof *u->stamp);
}

static int update_alloc(struct update *u)
{
  const struct refit_state *f = u->f;
  gidx k = f->k, columns, first;
  int many = f->c->size > 1;
  comm_partition(f->p, f->c->size, f->c->rank, &first, &columns);
  u->begin = (idx)first;
  u->end = (idx)(first + columns);
  TRY(buffers_alloc(u, columns));
  if (u->is_ragged) TRY(ragged_alloc(u));
  TRY(arena_alloc(&u->arena, &u->gathered, many ? k * f->p : 0, sizeof *u->gathered));
  TRY(arena_alloc(&u->arena, &u->before, k * f->p, sizeof *u->before));
  return arena_alloc(&u->arena, &u->counts, f->c->size, sizeof *u->counts);
}

static int plan(const struct refit_state *f, struct device *dev, int is_ragged, gidx *bytes)
{
  struct update dry = {.f = (struct refit_state *)f,
                       .device = dev,
                       .is_ragged = is_ragged,
                       .all = {.f = f, .device = dev, .arena.is_dry = 1},
                       .arena.is_dry = 1};
  TRY(update_alloc(&dry));
  if (has_all(&dry)) TRY(all_rows_alloc(&dry.all, f->total, is_shared(&dry)));
  dry.gram = (struct gram){.c = f->c, .device = dev, .k = f->k, .arena.is_dry = 1};
  TRY(gram_alloc(&dry.gram, is_shared(&dry)));
  *bytes = (gidx)dry.arena.bytes + (gidx)dry.all.arena.bytes + (gidx)dry.gram.arena.bytes;
  return OK;
}

int update_plan_ragged(const struct refit_state *f, struct device *dev, gidx *bytes)
{
  return plan(f, dev, 1, bytes);
}

/* Bytes of the copies that update_get() lends. */
static gidx lent_bytes(const struct refit_state *f, int is_gpu)
{
  int is_alone = f->c->size == 1;
  if (!f->task->lends_sums || f->c->rank || (is_alone && !is_gpu)) return 0;
  return gram_bytes(f->k) + (is_gpu ? (gidx)f->k * f->p * (gidx)sizeof(real) : 0);
}

int update_plan(const struct refit_state *f, struct device *dev, gidx *bytes)
{
  TRY(plan(f, dev, 0, bytes));
  *bytes += lent_bytes(f, dev->kind && !strcmp(dev->kind, "cuda"));
  return OK;
}

int update_bytes(const struct refit_state *f, const struct atom_batch *b, idx q, gidx *bytes)
{
  struct device dry = {.is_dry = 1};
  gidx first, columns;
  (void)b, (void)q;
  comm_partition(f->p, f->c->size, f->c->rank, &first, &columns);
  TRY(update_plan(f, &dry, bytes));
  *bytes += dry.planned_device + cpu_normal_beside(f->task->threads, (idx)columns) +
            (gidx)f->n * f->s * (gidx)sizeof(float);
  return OK;
}

int update_open(struct update *u, struct refit_state *f, struct device *device, gidx most)
{
  *u = (struct update){.f = f, .device = device};
  if (has_all(u)) TRY(all_rows_open(&u->all, f, device, most, is_shared(u)));
  TRY(gram_open(&u->gram, f->c, device, f->k, is_shared(u) ? &u->all : NULL));
  return update_alloc(u);
}

int update_open_ragged(struct update *u, struct refit_state *f, struct device *device)
{
  *u = (struct update){.f = f, .device = device, .is_ragged = 1};
  TRY(gram_open(&u->gram, f->c, device, f->k, NULL));
  return update_alloc(u);
}

void update_free(struct update *u)
{
  struct buffer *const all[] = {&u->target, &u->atoms, &u->diagonal, &u->forget, &u->energy,
                                &u->work,   &u->slots, &u->codes,    &u->rows};
  for (int i = 0; i < LENGTH(all); i++) buffer_free(u->device, all[i]);
  gram_close(&u->gram);
  all_rows_close(&u->all);
  free(u->lent_gram);
  free(u->lent_target);
  arena_free(&u->arena);
  *u = (struct update){0};
}

/* *out <- n items of rank `owner`, on every rank. */
static int block_send(struct update *u, int owner, const void *mine, gidx n, size_t unit, void *out)
{
  memset(u->counts, 0, (size_t)u->f->c->size * sizeof *u->counts);
  u->counts[owner] = (idx)n;
  return comm_allgather(u->f->c, mine, u->counts, unit, out);
}

/* Add n rows from `row` on, of s atoms each.  is_own: x has only the columns of this rank. */
static int rows_add(struct update *u, const struct update_rows *rows, gidx row, idx n, idx s,
                    int is_own)
{
  const struct refit_state *f = u->f;
  struct normal_job job = {.n = n,
                           .s = s,
                           .p = is_own ? u->end - u->begin : f->p,
                           .k = f->k,
                           .row = row,
                           .slots = rows->slots,
                           .codes = rows->codes,
                           .x = rows->x,
                           .own = u->gram.own,
                           .begin = is_own ? 0 : u->begin,
                           .end = is_own ? u->end - u->begin : u->end,
                           .gram = &u->gram.rows,
                           .target = &u->target,
                           .work = &u->work};
  return device_normal_add(u->device, &job);
}

/* Copy the received block to the device, and add it. */
static int block_take(struct update *u, idx n, gidx s)
{
  const struct update_rows block = {&u->slots, &u->codes, &u->rows};
  gidx p = u->f->p;
  TRY(device_put(u->device, &u->slots, 0, n * s * (gidx)sizeof(idx)));
  TRY(device_put(u->device, &u->codes, 0, n * s * (gidx)sizeof(float)));
  TRY(device_put(u->device, &u->rows, 0, n * p * (gidx)sizeof(float)));
  return rows_add(u, &block, 0, n, (idx)s, 0);
}

/* Pad row i of the block to s atoms: with atoms that it does not have, and codes 0. */
static void row_pad(struct update *u, const struct update_ragged *rows, gidx row, idx i, idx s)
{
  idx m = (idx)(rows->start[row + 1] - rows->start[row]), spare = 0;
  idx *slots = u->padded + (gidx)i * s;
  float *codes = u->padded_codes + (gidx)i * s;
  if (m) memcpy(slots, rows->atoms + rows->start[row], (size_t)m * sizeof *slots);
  if (m) memcpy(codes, rows->codes + rows->start[row], (size_t)m * sizeof *codes);
  for (idx j = 0; j < m; j++) u->stamp[slots[j]] = i + 1;
  for (idx j = m; j < s; j++) {
    while (u->stamp[spare] == i + 1) spare++;
    slots[j] = spare++;
    codes[j] = 0;
  }
}

/* Send a sum block of `owner`, padded to s atoms per row, to all ranks, and add it. */
static int block_add_ragged(struct update *u, const struct update_ragged *rows, int owner,
                            gidx first, idx n)
{
  const struct refit_state *f = u->f;
  idx s = rows->longest[first / ROW_BLOCK];
  int mine = f->c->rank == owner;
  gidx at = mine ? first - f->first : 0;
  memset(u->stamp, 0, (size_t)f->k * sizeof *u->stamp);
  for (idx i = 0; i < n && mine; i++) row_pad(u, rows, at + i, i, s);
  if (s == 0) return OK;
  size_t width = (size_t)s * sizeof(idx);
  TRY(block_send(u, owner, u->padded, n, width, u->slots.host));
  TRY(block_send(u, owner, u->padded_codes, n, width, u->codes.host));
  TRY(block_send(u, owner, rows->x + at * f->p, n, (size_t)f->p * sizeof(float), u->rows.host));
  return comm_agree(f->c, block_take(u, n, s));
}

static int sums_decay(struct update *u, real beta)
{
  gidx k = u->f->k, columns = u->end - u->begin;
  TRY(device_normal_decay(u->device, &u->gram.rows, 0, u->gram.own.count * k, beta));
  return device_normal_decay(u->device, &u->target, 0, k * columns, beta);
}

static int all_add(struct update *u)
{
  const struct refit_state *f = u->f;
  const struct update_rows rows = {&u->all.slots, &u->all.codes, &u->all.x};
  for (gidx i = 0; i < f->total; i += ROWS_AT_ONCE)
    TRY(rows_add(u, &rows, i, (idx)imin(ROWS_AT_ONCE, f->total - i), f->s, 1));
  return OK;
}

int update_add(struct update *u, const struct update_rows *rows, real beta)
{
  const struct refit_state *f = u->f;
  TRY(comm_agree(f->c, sums_decay(u, beta)));
  if (f->c->size == 1) return rows_add(u, rows, 0, f->n, f->s, 0);
  if (!u->has_columns) TRY(all_rows_columns(&u->all, rows));
  u->has_columns = 1;
  TRY(all_rows_lists(&u->all, rows));
  return comm_agree(f->c, all_add(u));
}

int update_add_ragged(struct update *u, const struct update_ragged *rows)
{
  const struct refit_state *f = u->f;
  TRY(comm_agree(f->c, sums_decay(u, 0)));
  for (int owner = 0; owner < f->c->size; owner++) {
    gidx first, n = refit_rows_partition(f->total, f->c->size, owner, &first);
    for (gidx i = 0; i < n; i += ROW_BLOCK)
      TRY(block_add_ragged(u, rows, owner, first + i, (idx)imin(ROW_BLOCK, n - i)));
  }
  return OK;
}

/* out[k][p] <- own[k][columns] of all ranks.  Collective. */
static int columns_gather(struct update *u, const real *own, real *out)
{
  struct refit_state *f = u->f;
  struct comm *c = f->c;
  const real *from = own;
  idx begin, count;
  if (c->size > 1) {
    for (int r = 0; r < c->size; r++) columns_partition(u, r, &begin, &u->counts[r]);
    TRY(comm_allgather(c, own, u->counts, (size_t)f->k * sizeof *own, u->gathered));
    from = u->gathered;
  }
  for (int r = 0; r < c->size; r++) {
    columns_partition(u, r, &begin, &count);
    for (idx a = 0; a < f->k; a++, from += count)
      memcpy(out + (gidx)a * f->p + begin, from, (size_t)count * sizeof *from);
  }
  return OK;
}

/* own[n][columns] <- this rank's columns of all[n][p]. */
static void columns_take(const struct update *u, const real *all, real *own, idx n)
{
  idx columns = u->end - u->begin;
  for (idx a = 0; a < n; a++)
    memcpy(own + (gidx)a * columns, all + (gidx)a * u->f->p + u->begin,
           (size_t)columns * sizeof *own);
}

/* Scale atoms with codes to unit norm.  An atom that cannot be scaled keeps its old value. */
static void frames_scale(const struct update *u, struct atom_step *steps)
{
  const struct refit_state *f = u->f;
  const real *diagonal = u->diagonal.host;
  for (idx a = 0; a < f->k; a++) {
    real *frame = f->frames + (gidx)a * f->p;
    steps[a] = (struct atom_step){.pair = det_pair_failed(), .log_det = nan_canonical()};
    if (!(diagonal[a] > 0)) continue;
    real norm = sqrt(chain_dot(frame, frame, f->p));
    if (norm > 0 && isfinite(norm)) {
      for (idx c = 0; c < f->p; c++) frame[c] /= norm;
      steps[a].accepted = 1;
    } else {
      memcpy(frame, u->before + (gidx)a * f->p, (size_t)f->p * sizeof *frame);
    }
  }
}

/* Passes of the descent over atoms first .. first + count - 1, in the columns of this rank. */
static int some_descend(void *self, const struct buffer *gram, idx first, idx count)
{
  struct update *u = self;
  struct descend_job job = {.k = u->f->k,
                            .columns = u->end - u->begin,
                            .passes = u->passes,
                            .first = first,
                            .count = count,
                            .gram = gram,
                            .target = &u->target,
                            .atoms = &u->atoms,
                            .diagonal = &u->diagonal,
                            .work = &u->work};
  return device_normal_descend(u->device, &job);
}

static gidx values_bytes(const struct update *u)
{
  return (gidx)u->f->k * (u->end - u->begin) * (gidx)sizeof(real);
}

static int atoms_put(struct update *u)
{
  columns_take(u, u->f->frames, u->atoms.host, u->f->k);
  return device_put(u->device, &u->atoms, 0, values_bytes(u));
}

static int atoms_get(struct update *u)
{
  TRY(device_get(u->device, &u->atoms, 0, values_bytes(u)));
  return device_get(u->device, &u->diagonal, 0, u->f->k * (gidx)sizeof(real));
}

/* One rank makes all passes in one call.  Several ranks exchange the whole matrix once per pass. */
static int atoms_descend(struct update *u, idx passes)
{
  int is_alone = u->f->c->size == 1;
  u->passes = is_alone ? passes : 1;
  for (idx i = 0; i < (is_alone ? 1 : passes); i++) TRY(gram_pass(&u->gram, some_descend, u));
  return OK;
}

int update_apply(struct update *u, idx passes, struct atom_step *steps)
{
  struct refit_state *f = u->f;
  memcpy(u->before, f->frames, (size_t)f->k * (size_t)f->p * sizeof *u->before);
  TRY(comm_agree(f->c, atoms_put(u)));
  TRY(comm_agree(f->c, atoms_descend(u, passes)));
  TRY(comm_agree(f->c, atoms_get(u)));
  TRY(columns_gather(u, u->atoms.host, f->frames));
  frames_scale(u, steps);
  return OK;
}

/* Copy columns begin .. end - 1 of all frames to the device, and add to the energies what these
 * columns contribute. */
static int columns_energies(struct update *u, const struct update_rows *rows, idx begin, idx end)
{
  const struct refit_state *f = u->f;
  const gidx count = end - begin;
  real *to = u->atoms.host;
  for (gidx a = 0; a < f->k; a++)
    memcpy(to + a * count, f->frames + a * f->p + begin, (size_t)count * sizeof *to);
  TRY(device_put(u->device, &u->atoms, 0, f->k * count * (gidx)sizeof *to));
  const struct energies_job job = {.n = f->n,
                                   .s = f->s,
                                   .p = f->p,
                                   .slots = rows->slots,
                                   .codes = rows->codes,
                                   .x = rows->x,
                                   .begin = begin,
                                   .end = end,
                                   .atoms = &u->atoms,
                                   .energy = &u->energy};
  return device_normal_energies(u->device, &job);
}

int update_energies(struct update *u, const struct update_rows *rows)
{
  const idx p = u->f->p, step = (idx)imax(u->end - u->begin, 1);
  const gidx bytes = u->f->n * (gidx)sizeof(real);
  if (u->energy.bytes < bytes) { /* this part has more rows than the first */
    buffer_free(u->device, &u->energy);
    TRY(buffer_alloc(u->device, &u->energy, bytes));
  }
  memset(u->energy.host, 0, (size_t)bytes);
  TRY(device_put(u->device, &u->energy, 0, bytes));
  for (idx begin = 0; begin < p; begin += step)
    TRY(columns_energies(u, rows, begin, (idx)imin(p, begin + step)));
  return device_get(u->device, &u->energy, 0, bytes);
}

int update_clear(struct update *u, const unsigned char *forget)
{
  struct clear_job job = {.k = u->f->k,
                          .columns = u->end - u->begin,
                          .own = u->gram.own,
                          .forget = &u->forget,
                          .gram = &u->gram.rows,
                          .target = &u->target};
  memcpy(u->forget.host, forget, (size_t)job.k);
  TRY(device_put(u->device, &u->forget, 0, job.k));
  return device_normal_clear(u->device, &job);
}

/* *view <- the target with a host side, which is allocated if u->target has none. */
static int target_view(struct update *u, struct buffer *view)
{
  *view = u->target;
  if (view->host) return OK;
  if (!u->lent_target) u->lent_target = memory_zeroed((size_t)imax(values_bytes(u), 1));
  CHECK(u->lent_target, ERR_MEMORY, "cannot allocate %lld bytes", (long long)values_bytes(u));
  view->host = u->lent_target;
  return OK;
}

/* *all <- the place of the whole matrix on rank 0.  A single CPU rank has the matrix already. */
static int gram_lend(struct update *u, real **all)
{
  int is_here = u->f->c->size == 1 && u->gram.rows.host;
  *all = is_here ? u->gram.rows.host : u->lent_gram;
  if (*all || u->f->c->rank) return OK;
  *all = u->lent_gram = memory_zeroed((size_t)gram_bytes(u->f->k));
  CHECK(*all, ERR_MEMORY, "cannot allocate %lld bytes", (long long)gram_bytes(u->f->k));
  return OK;
}

static int sums_fetch(struct update *u, struct buffer *target, real **all)
{
  TRY(target_view(u, target));
  TRY(gram_lend(u, all));
  return device_get(u->device, target, 0, values_bytes(u));
}

int update_get(struct update *u, const real **gram, const real **target)
{
  struct buffer own;
  real *all = NULL;
  TRY(comm_agree(u->f->c, sums_fetch(u, &own, &all)));
  if (all != u->gram.rows.host || u->f->c->size > 1) TRY(gram_get(&u->gram, all));
  *gram = all ? all : u->before;
  *target = u->before;
  return columns_gather(u, own.host, u->before);
}

/* piece[n][p] on every rank <- rows first .. first + n - 1 of all[..][p], which rank 0 has. */
static int piece_take(struct update *u, const real *all, gidx first, gidx n, real *piece)
{
  size_t unit = (size_t)u->f->p * sizeof *piece;
  if (u->f->c->rank == 0) memcpy(piece, all + first * u->f->p, (size_t)n * unit);
  return comm_broadcast(u->f->c, piece, n, unit);
}

static int target_send(struct update *u, const real *target, real *piece, gidx rows)
{
  gidx k = u->f->k, columns = u->end - u->begin;
  struct buffer own;
  TRY(comm_agree(u->f->c, target_view(u, &own)));
  for (gidx first = 0; first < k; first += rows) {
    gidx n = imin(rows, k - first);
    TRY(piece_take(u, target, first, n, piece));
    columns_take(u, piece, (real *)own.host + first * columns, (idx)n);
  }
  return comm_agree(u->f->c, device_put(u->device, &own, 0, values_bytes(u)));
}

int update_put(struct update *u, const real *gram, const real *target)
{
  enum { PIECE_BYTES = 16 << 20 };
  struct arena arena = {0};
  real *piece;
  gidx width = u->f->p, rows = imin(u->f->k, 1 + PIECE_BYTES / (width * (gidx)sizeof *piece));
  TRY(gram_put(&u->gram, gram));
  TRY(comm_agree(u->f->c, arena_alloc(&arena, &piece, rows * width, sizeof *piece)));
  TRY(target_send(u, target, piece, rows));
  arena_free(&arena);
  return OK;
}
