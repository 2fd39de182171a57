/* SPDX-License-Identifier: BSD-3-Clause
 * Own rows are routed and coded by a coder, or only coded on their present supports, in batches
 * (row_batches.h). */
#include "refit/sweep_end.h"

#include <string.h>

#include "base/num.h"
#include "base/sums.h"
#include "base/team.h"
#include "base/status.h"
#include "device/codes.h"
#include "refit/frames.h"
#include "refit/row_batches.h"
#include "refit/sums.h"
#include "encode/shard.h"

struct sweep_end {
  struct refit_state *f;
  const struct sweep_end_options *options;
  float *table;               /* [k][d][p] frames as stored */
  struct sparse_coder *coder; /* computes, or only has the rows' arrays */
  struct coded *rows;         /* own rows */
  struct code_counts counts;
  struct identity terms; /* of own supports, codes and atoms as files have them */
};

/* A task: round the frame of an own atom to f32, in place and in the table, and add its hash
 * terms. */
static void atom_round(void *self, gidx i)
{
  struct sweep_end *w = self;
  struct refit_state *f = w->f;
  gidx frame = (gidx)f->d * f->p, a = f->own_first + i;
  for (gidx j = a * frame; j < (a + 1) * frame; j++) {
    w->table[j] = (float)f->frames[j];
    f->frames[j] = w->table[j];
  }
  if (!f->names) return;
  uint64_t terms = items_terms(w->table + a * frame, 1, frame, a);
  __atomic_fetch_add(&w->terms.dictionary, terms, __ATOMIC_RELAXED);
}

struct sparse_coder_shape refit_sparse_coder_shape(const struct refit_state *f, idx rounds,
                                                   const char *device)
{
  const struct refit_task *t = f->task;
  return (struct sparse_coder_shape){.k = f->k,
                                     .d = f->d,
                                     .p = f->p,
                                     .s = f->s,
                                     .rounds = rounds,
                                     .nonnegative = t->nonnegative,
                                     .threads = t->threads,
                                     .kind = device,
                                     .variant = t->variant,
                                     .filter = t->filter,
                                     .local_rank = f->c->local_rank,
                                     .rows = f->n,
                                     .work = (double)f->total * f->k * f->d * f->p * rounds};
}

/* Solve the codes of some own rows on their present supports, on the state's own device, a CPU. */
static int state_code(struct sweep_end *w, idx first, idx n)
{
  struct refit_state *f = w->f;
  gidx at = (gidx)first * f->s;
  struct buffer table = host_buffer(w->table), x = host_buffer(f->x + (gidx)first * f->p);
  struct buffer atoms = host_buffer(f->atoms + at);
  struct buffer codes = host_buffer((float *)w->rows->codes.host + at * f->d);
  struct buffer quality = host_buffer((struct row_quality *)w->rows->quality.host + first);
  struct codes_job job = {.n = n,
                          .m_new = f->s,
                          .max_m = f->s,
                          .rho = f->rho,
                          .rows = &x,
                          .atoms = &table,
                          .slot = &atoms,
                          .codes = &codes,
                          .quality = &quality};
  return device_codes(&f->device, &job);
}

/* Route and code some own rows, or only code them. */
static int batch_run(struct sweep_end *w, idx first, idx n)
{
  real rho = w->f->rho;
  if (!w->options->coder) return state_code(w, first, n);
  return w->options->reroute ? sparse_coder_run(w->coder, w->rows, first, n, rho)
                             : sparse_coder_solve(w->coder, w->rows, first, n, rho);
}

/* A task: add the hash terms of supports and codes of some rows, and copy them to the state.  Terms
 * are integers, so the order of tasks does not matter. */
enum { TAKEN_ROWS = 512 };
static void rows_take(void *self, gidx piece)
{
  struct sweep_end *w = self;
  struct refit_state *f = w->f;
  gidx row = piece * TAKEN_ROWS, n = imin(f->n - row, TAKEN_ROWS), at = row * f->s;
  gidx entries = n * f->s, values = entries * f->d;
  const float *codes = (const float *)w->rows->codes.host + at * f->d;
  struct code_counts counts = {0};
  uint64_t supports = support_terms(f->atoms + at, n, f->s, f->first + row);
  uint64_t terms = codes_terms(f->score + at, codes, entries, f->d, f->first * f->s + at);
  for (gidx i = 0; i < values; i++) f->codes[at * f->d + i] = codes[i];
  codes_count(&counts, codes, values);
  __atomic_fetch_add(&w->terms.supports, supports, __ATOMIC_RELAXED);
  __atomic_fetch_add(&w->terms.codes, terms, __ATOMIC_RELAXED);
  __atomic_fetch_add(&w->counts.all, counts.all, __ATOMIC_RELAXED);
  __atomic_fetch_add(&w->counts.negative, counts.negative, __ATOMIC_RELAXED);
  __atomic_fetch_add(&w->counts.zero, counts.zero, __ATOMIC_RELAXED);
}

/* The dictionary is dealt to ranks as in encode. */
int refit_table_cosine(struct comm *c, const struct table_cosine *t, real *cosine)
{
  const struct atom_array table = {t->table, t->k, t->d, t->p};
  const struct atom_source source = atom_array_source(&table, t->name);
  struct tiling tiling = {t->k, tile_width_default(t->k, c->size), c->size};
  struct device_options options = {.p = t->p,
                                   .d = t->d,
                                   .max_atoms = tiling_local(&tiling, c->rank),
                                   .threads = t->threads,
                                   .variant = t->variant};
  struct device device = {0};
  struct shard tiles;
  TRY(comm_agree(c, device_open(&device, &options)));
  TRY(shard_load(&tiles, c, &source, tiling.width, 0, &device));
  TRY(shard_cosine(&tiles, c, c, &device, 1024, cosine));
  shard_free(&tiles, &device);
  device_close(&device);
  return OK;
}

/* Set the metrics of the new state, on rank 0. */
static int metrics_find(struct sweep_end *w, gidx *density, real tss, struct metrics *m)
{
  struct refit_state *f = w->f;
  gidx counts[] = {w->counts.all, w->counts.negative, w->counts.zero};
  TRY(comm_sum(f->c, counts, LENGTH(counts)));
  *m = (struct metrics){.n = f->total, .p = f->p, .k = f->k};
  m->max_decoder_cosine = nan_canonical();
  const struct table_cosine table = {
      w->table, f->k, f->d, f->p, f->task->threads, f->task->variant, f->task->atoms->name};
  if (f->k <= w->options->max_cosine) TRY(refit_table_cosine(f->c, &table, &m->max_decoder_cosine));
  for (idx a = 0; a < f->k; a++) density[a] = refit_atom_rows(f, a);
  metrics_density(m, density, f->total, f->k);
  TRY(coded_metrics(w->rows, f->c, tss, m));
  metrics_codes(m, &(struct code_counts){counts[0], counts[1], counts[2]});
  return OK;
}

/* f->contents <- the hashes of the data that files will have. */
static int contents_name(struct sweep_end *w)
{
  struct refit_state *f = w->f;
  TRY(refit_identity(f, &w->terms, &f->contents));
  f->contents.rows = 0; /* no file that this job writes has the rows */
  return OK;
}

double refit_sweep_end_seconds(const struct refit_state *f, const struct sparse_coder *coder,
                               int reroute)
{
  const struct sparse_coder own = {.shape = refit_sparse_coder_shape(f, 1, "cpu"),
                                   .device = f->device};
  return sparse_coder_seconds(coder ? coder : &own, f->n, reroute);
}

int refit_sweep_end_bytes(const struct refit_state *f, gidx *bytes)
{
  struct sparse_coder_shape shape = refit_sparse_coder_shape(f, 2, "cpu");
  const struct refit_task *t = f->task;
  gidx coder, table = (gidx)f->k * f->d * f->p * (gidx)sizeof(float), tables = 3;
  if (t->has_table) tables = f->k <= t->max_cosine ? 2 : 0;
  if (t->has_table && !t->routes) shape.k = 1; /* codes only: the coder has just the rows' arrays */
  TRY(sparse_coder_bytes(&shape, f->n, &coder));
  *bytes = coder + tables * table;
  return OK;
}

/* Round the frames to f32, and put the rows of this rank on the device that codes them. */
static int frames_put(struct sweep_end *w)
{
  const struct sweep_end_options *o = w->options;
  struct refit_state *f = w->f;
  TRY(refit_frames_sync(f));
  team_run(f->task->threads, f->own_count, atom_round, w);
  TRY(refit_frames_sync(f));
  if (!o->rows) TRY(coded_open(w->coder, w->rows, f->n, f->first, f->x, f->atoms, f->score));
  if (!o->coder) return OK;
  TRY(sparse_coder_put(w->coder, w->table));
  return o->reroute || o->rows ? OK : coded_put(w->coder, w->rows, f->codes);
}

/* Take the supports and codes of this rank, as files will have them. */
static int codes_take(struct sweep_end *w)
{
  int what = w->options->reroute ? CODED_ALL : CODED_CODES | CODED_QUALITY;
  if (w->options->coder) TRY(coded_get(w->coder, w->rows, what));
  team_run(w->f->task->threads, ceil_div(w->f->n, TAKEN_ROWS), rows_take, w);
  return OK;
}

/* Round the frames, code the rows in batches, and take the results, on all ranks. */
static int state_round(struct sweep_end *w, int *stopped)
{
  struct refit_state *f = w->f;
  idx each = sparse_coder_rows_at_once(w->coder, w->options->reroute);
  struct row_batches batches = {f->n, each, .key = f->first, .stops = &w->options->stops};
  int status = OK;
  TRY(comm_agree(f->c, frames_put(w)));
  while (row_batches_next(&batches, f->c, &status))
    status = batch_run(w, batches.first, batches.count);
  TRY(status);
  *stopped = batches.is_stopped;
  return *stopped ? OK : comm_agree(f->c, codes_take(w));
}

int refit_sweep_end(struct refit_state *f, const struct sweep_end_options *options, gidx *density,
                    real tss, struct metrics *metrics, int *stopped)
{
  struct coded here = {0};
  struct sweep_end w = {.f = f,
                        .options = options,
                        .table = options->table,
                        .rows = options->rows ? options->rows : &here};
  /* Without a coder the state's own device has the arrays. */
  struct sparse_coder own = {.shape = refit_sparse_coder_shape(f, 1, "cpu"), .device = f->device};
  w.coder = options->coder ? options->coder : &own;
  TRY(state_round(&w, stopped));
  if (!*stopped) TRY(contents_name(&w));
  struct resident *lists = options->resident;
  if (!*stopped && options->reroute) TRY(lists ? resident_index(lists) : refit_state_index(f));
  if (!*stopped) TRY(metrics_find(&w, density, tss, metrics));
  if (!options->rows) coded_close(w.coder, &here);
  return OK;
}
