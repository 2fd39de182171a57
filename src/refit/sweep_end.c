/* SPDX-License-Identifier: BSD-3-Clause
 * Own rows are coded a sum block at a time; the values of rows become a chain for each block, and
 * those a sum on rank 0. */
#include "refit/sweep_end.h"

#include <string.h>

#include "base/num.h"
#include "base/sums.h"
#include "base/status.h"
#include "device/codes.h"
#include "refit/reroute.h"
#include "refit/sums.h"
#include "encode/shard.h"

struct sweep_end {
  struct refit_state *f;
  const struct sweep_end_options *options;
  struct arena arena;
  float *table;                /* [k][d][p] frames as stored */
  float *codes;                /* [ROW_BLOCK][s][d] */
  struct row_quality *quality; /* [ROW_BLOCK] */
  real *chains;                /* [blocks][2] errors, cosines */
  gidx nonzero;
  struct code_counts counts;
  struct identity terms; /* of own supports and codes as files have them; of the table on rank 0 */
};

static int sweep_end_alloc(struct sweep_end *w)
{
  const struct refit_state *f = w->f;
  gidx frame = (gidx)f->d * f->p, code = (gidx)f->s * f->d;
  TRY(arena_alloc(&w->arena, &w->table, f->k * frame, sizeof *w->table));
  TRY(arena_alloc(&w->arena, &w->codes, ROW_BLOCK * code, sizeof *w->codes));
  TRY(arena_alloc(&w->arena, &w->quality, ROW_BLOCK, sizeof *w->quality));
  return arena_alloc(&w->arena, &w->chains, 2 * f->blocks, sizeof *w->chains);
}

/* Round the frames to f32, in place and in the table. */
static void frames_round(struct sweep_end *w)
{
  struct refit_state *f = w->f;
  for (gidx i = 0; i < (gidx)f->k * f->d * f->p; i++) {
    w->table[i] = (float)f->frames[i];
    f->frames[i] = w->table[i];
  }
}

/* Solve the codes of the rows of own sum block number `block`, and add up their quality. */
static int block_codes(struct sweep_end *w, gidx block)
{
  struct refit_state *f = w->f;
  gidx first = block * ROW_BLOCK, code = (gidx)f->s * f->d;
  idx n = f->n - first < ROW_BLOCK ? (idx)(f->n - first) : ROW_BLOCK;
  struct buffer rows = host_buffer(f->x + first * f->p), table = host_buffer(w->table),
                slot = host_buffer(f->atoms + first * f->s), codes = host_buffer(w->codes),
                quality = host_buffer(w->quality);
  struct codes_job job = {.n = n,
                          .m_new = f->s,
                          .max_m = f->s,
                          .rho = f->rho,
                          .rows = &rows,
                          .atoms = &table,
                          .slot = &slot,
                          .codes = &codes,
                          .quality = &quality};
  TRY(device_codes(&f->device, &job));
  w->terms.supports += support_terms(slot.host, n, f->s, f->first + first);
  w->terms.codes += codes_terms(f->score + first * f->s, w->codes, (gidx)n * f->s, f->d,
                                (f->first + first) * f->s);
  for (gidx i = 0; i < n * code; i++) f->codes[first * code + i] = w->codes[i];
  codes_count(&w->counts, w->codes, n * code);
  for (idx i = 0; i < n; i++) {
    w->chains[2 * block] += w->quality[i].error;
    w->chains[2 * block + 1] += w->quality[i].cosine;
    w->nonzero += w->quality[i].nonzero;
  }
  return OK;
}

/* Read the table as a source of atoms, for the decoder cosine. */
static int table_read(void *self, idx first, idx count, float *out)
{
  const struct sweep_end *w = self;
  gidx frame = (gidx)w->f->d * w->f->p;
  memcpy(out, w->table + first * frame, (size_t)(count * frame) * sizeof *out);
  return OK;
}

/* The largest cosine of two atoms: the dictionary is dealt out as encode does. */
static int cosine_find(struct sweep_end *w, real *cosine)
{
  struct refit_state *f = w->f;
  struct atom_source source = {f->k, f->d, f->p, f->task->atoms->name, w, table_read};
  struct tiling tiling = {f->k, tile_width_default(f->k, f->c->size), f->c->size};
  struct device_options options = {.p = f->p,
                                   .d = f->d,
                                   .max_atoms = tiling_held(&tiling, f->c->rank),
                                   .threads = f->task->threads,
                                   .variant = f->task->variant};
  struct device device = {0};
  struct shard tiles;
  TRY(comm_agree(f->c, device_open(&device, &options)));
  TRY(shard_load(&tiles, f->c, &source, tiling.width, 0, &device));
  TRY(shard_cosine(&tiles, f->c, &device, 1024, cosine));
  shard_free(&tiles, &device);
  device_close(&device);
  return OK;
}

/* The metrics of the new state, on rank 0. */
static int metrics_find(struct sweep_end *w, gidx *density, real tss, struct metrics *m)
{
  struct refit_state *f = w->f;
  real sums[2] = {0};
  TRY(refit_sum(f, w->chains, 2, sums));
  gidx counts[] = {w->nonzero, w->counts.all, w->counts.negative, w->counts.zero};
  TRY(comm_sum(f->c, counts, LENGTH(counts)));
  *m = (struct metrics){.n = f->total, .p = f->p, .k = f->k};
  m->max_decoder_cosine = nan_canonical();
  if (f->k <= w->options->max_cosine) TRY(cosine_find(w, &m->max_decoder_cosine));
  for (idx a = 0; a < f->k; a++) density[a] = refit_atom_rows(f, a);
  metrics_density(m, density, f->total, f->k);
  metrics_fit(m, sums[0], tss, sums[1], counts[0]);
  metrics_codes(m, &(struct code_counts){counts[1], counts[2], counts[3]});
  return OK;
}

/* Name what files will have. */
static int contents_name(struct sweep_end *w)
{
  struct refit_state *f = w->f;
  if (f->c->rank == 0) w->terms.dictionary = items_terms(w->table, f->k, (gidx)f->d * f->p, 0);
  TRY(refit_identity(f, &w->terms, &f->contents));
  f->contents.rows = 0; /* of no file that it writes */
  return OK;
}

int refit_sweep_end_bytes(const struct refit_state *f, gidx *bytes)
{
  struct sweep_end w = {.f = (struct refit_state *)f, .arena.is_dry = 1};
  gidx reroute, device = 2 * (gidx)f->k * f->d * f->p * (gidx)sizeof(float);
  TRY(sweep_end_alloc(&w));
  TRY(refit_reroute_bytes(f, &reroute));
  *bytes = (gidx)w.arena.bytes + reroute + device;
  return OK;
}

/* Frames, supports and codes of this rank as files will have them. */
static int state_round(struct sweep_end *w)
{
  struct refit_state *f = w->f;
  TRY(sweep_end_alloc(w));
  frames_round(w);
  if (w->options->reroute && f->s) TRY(refit_reroute(f, w->table, w->options->rounds));
  for (gidx block = 0; block < f->blocks; block++) TRY(block_codes(w, block));
  return OK;
}

int refit_sweep_end(struct refit_state *f, const struct sweep_end_options *options, gidx *density,
                    real tss, struct metrics *metrics)
{
  struct sweep_end w = {.f = f, .options = options};
  TRY(comm_agree_at(f->c, state_round(&w), f->first));
  TRY(contents_name(&w));
  if (options->reroute) TRY(refit_state_index(f));
  TRY(metrics_find(&w, density, tss, metrics));
  arena_free(&w.arena);
  return OK;
}
