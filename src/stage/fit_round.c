/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of own rows a block at a time; row values become chains of row blocks, and those a sum on
 * rank 0. */
#include "stage/fit_round.h"

#include <string.h>

#include "base/order.h"
#include "base/status.h"
#include "stage/reroute.h"
#include "stage/tiles.h"

/* What a sweep's end works with. */
struct rounding {
  struct fit *f;
  const struct fit_round *options;
  struct arena arena;
  float *table;                /* [k][d][p] frames as stored */
  float *codes;                /* [ROW_BLOCK][s][d] */
  struct row_quality *quality; /* [ROW_BLOCK] */
  real *chains;                /* [blocks][2] errors, cosines */
  gidx nonzero;
};

static int rounding_take(struct rounding *w)
{
  const struct fit *f = w->f;
  gidx frame = (gidx)f->d * f->p, code = (gidx)f->s * f->d;
  TRY(arena_take(&w->arena, &w->table, f->k * frame, sizeof *w->table));
  TRY(arena_take(&w->arena, &w->codes, ROW_BLOCK * code, sizeof *w->codes));
  TRY(arena_take(&w->arena, &w->quality, ROW_BLOCK, sizeof *w->quality));
  return arena_take(&w->arena, &w->chains, 2 * f->blocks, sizeof *w->chains);
}

static void frames_round(struct rounding *w)
{
  struct fit *f = w->f;
  for (gidx i = 0; i < (gidx)f->k * f->d * f->p; i++) {
    w->table[i] = (float)f->frames[i];
    f->frames[i] = w->table[i];
  }
}

/* Codes of the rows of own row block number `block`. */
static int block_codes(struct rounding *w, gidx block)
{
  struct fit *f = w->f;
  gidx first = block * ROW_BLOCK, code = (gidx)f->s * f->d;
  idx n = f->n - first < ROW_BLOCK ? (idx)(f->n - first) : ROW_BLOCK;
  struct buffer rows = host_buffer(f->x + first * f->p), table = host_buffer(w->table),
                slot = host_buffer(f->atoms + first * f->s), codes = host_buffer(w->codes),
                quality = host_buffer(w->quality);
  struct codes_job job = {.n = n,
                          .m_new = f->s,
                          .m_most = f->s,
                          .rho = f->rho,
                          .rows = &rows,
                          .atoms = &table,
                          .slot = &slot,
                          .codes = &codes,
                          .quality = &quality};
  TRY(device_codes(&f->device, &job));
  for (gidx i = 0; i < n * code; i++) f->codes[first * code + i] = w->codes[i];
  for (idx i = 0; i < n; i++) {
    w->chains[2 * block] += w->quality[i].error;
    w->chains[2 * block + 1] += w->quality[i].cosine;
    w->nonzero += w->quality[i].nonzero;
  }
  return OK;
}

/* The dictionary in memory as a source, for its cosines. */
static int table_read(void *self, idx first, idx count, float *out)
{
  const struct rounding *w = self;
  gidx frame = (gidx)w->f->d * w->f->p;
  memcpy(out, w->table + first * frame, (size_t)(count * frame) * sizeof *out);
  return OK;
}

static int cosine_find(struct rounding *w, real *cosine)
{
  struct fit *f = w->f;
  struct atom_source source = {f->k, f->d, f->p, f->task->atoms->name, w, table_read};
  struct tiling tiling = {f->k, tile_choose(f->k, f->c->size), f->c->size};
  struct device_options options = {.p = f->p,
                                   .d = f->d,
                                   .atoms_most = tiling_held(&tiling, f->c->rank),
                                   .threads = f->task->threads,
                                   .variant = f->task->variant};
  struct device device = {0};
  struct tiles tiles;
  TRY(comm_agree(f->c, device_open(&device, &options)));
  TRY(tiles_load(&tiles, f->c, &source, tiling.width, 0, &device));
  TRY(tiles_cosine(&tiles, f->c, &device, 1024, cosine));
  tiles_free(&tiles, &device);
  device_close(&device);
  return OK;
}

static int metrics_find(struct rounding *w, gidx *density, real tss, struct metrics *m)
{
  struct fit *f = w->f;
  real sums[2] = {0};
  TRY(fit_sum(f, w->chains, 2, sums));
  TRY(comm_sum(f->c, &w->nonzero, 1));
  *m = (struct metrics){.n = f->total, .p = f->p, .k = f->k};
  m->max_decoder_cosine = canonical_nan();
  if (f->k <= w->options->cosine_most) TRY(cosine_find(w, &m->max_decoder_cosine));
  for (idx a = 0; a < f->k; a++) density[a] = 0;
  for (int r = 0; r < f->c->size; r++)
    for (idx a = 0; a < f->k; a++) density[a] += f->counts[(gidx)r * f->k + a];
  metrics_density(m, density, f->total, f->k);
  metrics_fit(m, sums[0], tss, sums[1], w->nonzero);
  return OK;
}

static int rows_round(struct rounding *w)
{
  struct fit *f = w->f;
  TRY(rounding_take(w));
  frames_round(w);
  if (w->options->reroute && f->s) TRY(fit_reroute(f, w->table, w->options->rounds));
  for (gidx block = 0; block < f->blocks; block++) TRY(block_codes(w, block));
  return OK;
}

int fit_round(struct fit *f, const struct fit_round *options, gidx *density, real tss,
              struct metrics *metrics)
{
  struct rounding w = {.f = f, .options = options};
  TRY(comm_agree_at(f->c, rows_round(&w), f->first));
  if (options->reroute) TRY(fit_index(f));
  TRY(metrics_find(&w, density, tss, metrics));
  arena_free(&w.arena);
  return OK;
}
