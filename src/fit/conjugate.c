/* SPDX-License-Identifier: BSD-3-Clause
 * Each rank moves its own columns of all atoms; then each rank receives some whole atoms and scales
 * them. */
#include "fit/conjugate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "device/conjugate.h"
#include "device/normal.h"
#include "model/conjugate.h"
#include "model/state.h"

static int is_shared(const struct conjugate *u)
{
  return u->f->task && u->f->task->shares_gram;
}

static idx columns_of(const struct conjugate *u, int rank)
{
  gidx first, count;
  comm_partition(u->f->p, u->f->c->size, rank, &first, &count);
  return (idx)count;
}

/* The number of atoms that a rank scales. */
static idx atoms_of(const struct conjugate *u, int rank)
{
  gidx first, count;
  comm_partition(u->f->k, u->f->c->size, rank, &first, &count);
  return (idx)count;
}

static int alloc(struct conjugate *u, gidx most)
{
  const struct refit_state *f = u->f;
  const gidx k = f->k, size = f->c->size;
  gidx first, count;
  comm_partition(f->p, f->c->size, f->c->rank, &first, &count);
  u->begin = (idx)first;
  u->end = (idx)(first + count);
  comm_partition(k, f->c->size, f->c->rank, &first, &count);
  u->first = (idx)first;
  u->count = (idx)count;
  idx columns = u->end - u->begin;
  TRY(arena_alloc(&u->arena, &u->held, k, sizeof *u->held));
  TRY(arena_alloc(&u->arena, &u->weight, k, sizeof *u->weight));
  TRY(arena_alloc(&u->arena, &u->columns, k * imax(columns, 1), sizeof *u->columns));
  TRY(arena_alloc(&u->arena, &u->came, size > 1 ? count * f->p : 0, sizeof *u->came));
  TRY(arena_alloc(&u->arena, &u->work, cpu_conjugate_bytes(f->task->threads, most, f->k, columns),
                  1));
  TRY(arena_alloc(&u->arena, &u->moved, k, sizeof *u->moved));
  TRY(arena_alloc(&u->arena, &u->send, size, sizeof *u->send));
  return arena_alloc(&u->arena, &u->receive, size, sizeof *u->receive);
}

int conjugate_bytes(const struct refit_state *f, const struct atom_batch *b, idx q, gidx *bytes)
{
  struct device dev = {.is_dry = 1};
  struct conjugate dry = {.f = (struct refit_state *)f,
                          .all = {.f = f, .device = &dev, .arena.is_dry = 1},
                          .arena.is_dry = 1};
  (void)b, (void)q;
  TRY(alloc(&dry, f->total));
  if (f->c->size > 1) TRY(all_rows_alloc(&dry.all, f->total, is_shared(&dry)));
  *bytes = (gidx)dry.arena.bytes + (gidx)dry.all.arena.bytes + dev.planned_device +
           (gidx)f->n * (gidx)sizeof *dry.energy + (gidx)f->n * f->s * (gidx)sizeof(float);
  return OK;
}

static int prepare(struct conjugate *u, gidx most)
{
  const struct device_options options = {
      .p = u->f->p, .d = 1, .threads = u->f->task->threads, .variant = u->f->task->variant};
  TRY(alloc(u, most));
  memset(u->weight, 0, (size_t)u->f->k * sizeof *u->weight);
  return device_open(&u->device, &options);
}

int conjugate_open(struct conjugate *u, struct refit_state *f, gidx most)
{
  *u = (struct conjugate){.f = f};
  TRY(comm_agree(f->c, prepare(u, most)));
  return f->c->size > 1 ? all_rows_open(&u->all, f, &u->device, most, is_shared(u)) : OK;
}

void conjugate_free(struct conjugate *u)
{
  all_rows_close(&u->all);
  if (u->device.backend) device_close(&u->device);
  free(u->energy);
  arena_free(&u->arena);
  *u = (struct conjugate){0};
}

/* A rank's own rows, on the host. */
struct own_rows {
  struct buffer slots, codes, x;
};

static struct buffer view(void *host, gidx items, size_t unit)
{
  struct buffer b = host_buffer(host);
  b.bytes = items * (gidx)unit;
  return b;
}

static struct own_rows own_rows(const struct refit_state *f, const struct update_rows *rows)
{
  const gidx entries = (gidx)f->n * f->s;
  return (struct own_rows){view(rows->slots->host, entries, sizeof(idx)),
                           view(rows->codes->host, entries, sizeof(float)),
                           view(rows->x->host, (gidx)f->n * f->p, sizeof(float))};
}

/* *job <- the rows of all ranks, with only the columns of this rank.  Exchanges columns and
 * lists. */
static int job_prepare(struct conjugate *u, const struct update_rows *rows,
                       struct conjugate_job *job)
{
  const struct refit_state *f = u->f;
  const struct own_rows o = own_rows(f, rows);
  const struct update_rows own = {&o.slots, &o.codes, &o.x};
  const int many = f->c->size > 1;
  if (many && !u->has_columns) TRY(all_rows_columns(&u->all, &own));
  u->has_columns = 1;
  if (many) TRY(all_rows_lists(&u->all, &own));
  *job = (struct conjugate_job){.n = f->total,
                                .s = f->s,
                                .k = f->k,
                                .columns = u->end - u->begin,
                                .atoms = many ? u->all.slots.host : o.slots.host,
                                .codes = many ? u->all.codes.host : o.codes.host,
                                .x = many ? u->all.x.device : o.x.host,
                                .x_stride = u->end - u->begin,
                                .before = f->frames + u->begin,
                                .before_stride = f->p,
                                .held = u->held,
                                .weight = u->weight,
                                .after = u->columns,
                                .work = u->work};
  return OK;
}

/* held[k] <- beta times the weight of earlier rows; weight[k] <- held[k] plus the weight of the
 * current rows of all ranks. */
static void weigh(struct conjugate *u, const struct conjugate_job *job, real beta)
{
  enum { ROWS_AT_ONCE = 1 << 20 };
  for (idx a = 0; a < job->k; a++) u->held[a] = u->weight[a] *= beta;
  for (gidx i = 0; i < job->n; i += ROWS_AT_ONCE) {
    const struct normal_rows rows = {.n = (idx)imin(ROWS_AT_ONCE, job->n - i),
                                     .s = job->s,
                                     .atoms = job->atoms + i * job->s,
                                     .codes = job->codes + i * job->s};
    conjugate_weigh(&rows, u->weight);
  }
}

/* came <- the atoms that this rank scales: for each rank in turn [count][its columns]. */
static int atoms_exchange(struct conjugate *u)
{
  const struct refit_state *f = u->f;
  struct comm *c = f->c;
  for (int r = 0; r < c->size; r++) {
    TRY(comm_count((gidx)atoms_of(u, r) * (u->end - u->begin), &u->send[r]));
    TRY(comm_count((gidx)u->count * columns_of(u, r), &u->receive[r]));
  }
  return comm_alltoallv(c, u->columns, u->send, u->came, u->receive, sizeof *u->came);
}

/* row[p] <- atom u->first + i, joined from the columns of all ranks. */
static void atom_join(const struct conjugate *u, gidx i, real *row)
{
  const real *from = u->came;
  for (int r = 0; r < u->f->c->size; r++) {
    gidx columns = columns_of(u, r);
    memcpy(row, from + i * columns, (size_t)columns * sizeof *row);
    row += columns;
    from += u->count * columns;
  }
}

/* Scale an own atom to unit norm.  It does not change if it has no codes, or if its norm is 0 or
 * not finite. */
static void atom_scale(struct conjugate *u, idx i, const real *row)
{
  const idx a = u->first + i, p = u->f->p;
  real *frame = u->f->frames + (gidx)a * p, norm = sqrt(chain_dot(row, row, p));
  u->moved[a] = u->weight[a] > 0 && norm > 0 && isfinite(norm);
  for (idx c = 0; c < p && u->moved[a]; c++) frame[c] = row[c] / norm;
}

static int atoms_scale(struct conjugate *u)
{
  const struct refit_state *f = u->f;
  const int many = f->c->size > 1;
  struct arena arena = {0};
  real *row;
  TRY(arena_alloc(&arena, &row, f->p, sizeof *row));
  for (idx i = 0; i < u->count; i++) {
    if (many) atom_join(u, i, row);
    atom_scale(u, i, many ? row : u->columns + (gidx)i * f->p);
  }
  arena_free(&arena);
  return OK;
}

/* Send the own atoms to all ranks. */
static int atoms_send(struct conjugate *u)
{
  const struct refit_state *f = u->f;
  for (int r = 0; r < f->c->size; r++) u->send[r] = atoms_of(u, r);
  TRY(comm_allgather(f->c, f->frames + (gidx)u->first * f->p, u->send,
                     (size_t)f->p * sizeof *f->frames, f->frames));
  return comm_allgather(f->c, u->moved + u->first, u->send, sizeof *u->moved, u->moved);
}

int conjugate_move(struct conjugate *u, const struct update_rows *rows, real beta, idx count,
                   struct atom_step *steps)
{
  const struct refit_state *f = u->f;
  struct conjugate_job job;
  TRY(job_prepare(u, rows, &job));
  job.steps = count;
  weigh(u, &job, beta);
  TRY(comm_agree(f->c, cpu_conjugate(&u->device, &job)));
  if (f->c->size > 1) TRY(atoms_exchange(u));
  TRY(comm_agree(f->c, atoms_scale(u)));
  if (f->c->size > 1) TRY(atoms_send(u));
  for (idx a = 0; a < f->k; a++)
    steps[a] = (struct atom_step){
        .pair = det_pair_failed(), .log_det = nan_canonical(), .accepted = u->moved[a]};
  return OK;
}

static int energy_alloc(struct conjugate *u, gidx rows)
{
  if (u->energy_rows >= rows && u->energy) return OK;
  free(u->energy);
  u->energy_rows = imax(rows, 1);
  u->energy = memory_zeroed((size_t)u->energy_rows * sizeof *u->energy);
  CHECK(u->energy, ERR_MEMORY, "cannot allocate %lld bytes",
        (long long)u->energy_rows * (long long)sizeof *u->energy);
  return OK;
}

/* Add to u->energy what columns begin .. end - 1 contribute. */
static int columns_energies(struct conjugate *u, const struct update_rows *rows, idx begin, idx end)
{
  const struct refit_state *f = u->f;
  const gidx count = end - begin;
  const struct own_rows o = own_rows(f, rows);
  const struct buffer atoms = view(u->columns, f->k * count, sizeof(real));
  struct buffer energy = view(u->energy, f->n, sizeof(real));
  for (gidx a = 0; a < f->k; a++)
    memcpy(u->columns + a * count, f->frames + a * f->p + begin, (size_t)count * sizeof(real));
  const struct energies_job job = {.n = f->n,
                                   .s = f->s,
                                   .p = f->p,
                                   .slots = &o.slots,
                                   .codes = &o.codes,
                                   .x = &o.x,
                                   .begin = begin,
                                   .end = end,
                                   .atoms = &atoms,
                                   .energy = &energy};
  return device_normal_energies(&u->device, &job);
}

int conjugate_energies(struct conjugate *u, const struct update_rows *rows)
{
  const idx p = u->f->p, step = (idx)imax(u->end - u->begin, 1);
  TRY(energy_alloc(u, u->f->n));
  memset(u->energy, 0, (size_t)u->f->n * sizeof *u->energy);
  for (idx begin = 0; begin < p; begin += step)
    TRY(columns_energies(u, rows, begin, (idx)imin(p, begin + step)));
  return OK;
}

void conjugate_clear(struct conjugate *u, const unsigned char *forget)
{
  for (idx a = 0; a < u->f->k; a++)
    if (forget[a]) u->weight[a] = 0;
}

void conjugate_put(struct conjugate *u, const real *weight)
{
  memcpy(u->weight, weight, (size_t)u->f->k * sizeof *weight);
}
