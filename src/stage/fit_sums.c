/* SPDX-License-Identifier: BSD-3-Clause
 * Sums over all rows of a fit by (N.0): own row blocks are joined as far as they go, rank 0
 * completes the tree.  And the way of a fit's state to its sinks. */
#include <math.h>
#include <string.h>

#include "base/block_tree.h"
#include "base/order.h"
#include "base/status.h"
#include "device/refit.h"
#include "stage/access.h"
#include "stage/fit_round.h"

struct nodes {
  struct arena arena;
  struct block_tree tree;
  idx *counts; /* [size] nodes of each rank */
  real *all;   /* nodes of all ranks, on rank 0 */
};

static int nodes_take(struct nodes *w, const struct fit *f, idx width)
{
  gidx first, blocks, total = 0;
  TRY(arena_take(&w->arena, &w->counts, f->c->size, sizeof *w->counts));
  for (int r = 0; r < f->c->size; r++) {
    fit_share(f->total, f->c->size, r, &first, &blocks);
    total += w->counts[r] = block_nodes_count(first, blocks);
  }
  TRY(block_tree_init(&w->tree, &w->arena, width, 0, first + blocks));
  return arena_take(&w->arena, &w->all, f->c->rank ? 0 : total * width, sizeof *w->all);
}

static void nodes_complete(struct nodes *w, const struct fit *f, real *out)
{
  const real *from = w->all;
  w->tree.count = 0;
  for (int r = 0; r < f->c->size; r++) {
    gidx first, blocks;
    fit_share(f->total, f->c->size, r, &first, &blocks);
    for (gidx end = first + blocks; first < end; from += w->tree.width) {
      struct block_node node = block_node_next(first, end);
      first += (gidx)1 << node.level;
      node.present = 1;
      block_tree_push(&w->tree, node, from);
    }
  }
  block_tree_total(&w->tree, out);
}

int fit_sum(const struct fit *f, const real *chains, idx width, real *out)
{
  struct nodes w = {0};
  TRY(comm_agree(f->c, nodes_take(&w, f, width)));
  for (gidx i = 0; i < f->blocks; i++)
    block_tree_push(&w.tree, (struct block_node){0, 1, f->block_first + i}, chains + i * width);
  TRY(comm_gather(f->c, w.tree.values, w.counts, (size_t)width * sizeof(real), w.all));
  if (f->c->rank == 0) nodes_complete(&w, f, out);
  arena_free(&w.arena);
  return OK;
}

/* sums[blocks][2 p] <- chains of x - k and of its squares. */
static void columns_chain(const struct fit *f, const real *shift, real *sums)
{
  for (gidx i = 0; i < f->n; i++) {
    real *sum = sums + i / ROW_BLOCK * 2 * f->p, *squares = sum + f->p;
    for (idx c = 0; c < f->p; c++) {
      real t = f->x[i * f->p + c] - shift[c];
      sum[c] += t;
      squares[c] += t * t;
    }
  }
}

int fit_tss(const struct fit *f, real *tss)
{
  struct arena arena = {0};
  real *shift = NULL, *sums = NULL, *total = NULL;
  int status = arena_take(&arena, &shift, f->p, sizeof *shift);
  if (!status) status = arena_take(&arena, &sums, f->blocks * 2 * f->p, sizeof *sums);
  if (!status) status = arena_take(&arena, &total, 2 * (gidx)f->p, sizeof *total);
  TRY(comm_agree(f->c, status));
  if (f->c->rank == 0) rows_shift(f->x, f->n < SHIFT_ROWS ? f->n : SHIFT_ROWS, f->p, shift);
  TRY(comm_broadcast(f->c, shift, f->p, sizeof *shift));
  columns_chain(f, shift, sums);
  TRY(fit_sum(f, sums, 2 * f->p, total));
  *tss = 0;
  for (idx c = 0; c < f->p && f->total; c++)
    *tss += total[f->p + c] - total[c] * total[c] / (real)f->total;
  arena_free(&arena);
  return OK;
}

int fit_rss(struct fit *f, real *rss)
{
  struct arena arena = {0};
  real *errors = NULL, *chains = NULL;
  idx *rows = NULL;
  *rss = 0;
  int status = arena_take(&arena, &errors, f->n, sizeof *errors);
  if (!status) status = arena_take(&arena, &rows, f->n, sizeof *rows);
  if (!status) status = arena_take(&arena, &chains, f->blocks, sizeof *chains);
  for (idx i = 0; i < f->n && !status; i++) rows[i] = i;
  struct rows_item item = {.rows = rows, .n = f->n, .count = 1, .stride = 1, .out = errors};
  if (!status) status = device_row_products(&f->device, f->residual, f->p, &item, 1);
  TRY(comm_agree(f->c, status));
  for (idx i = 0; i < f->n; i++) chains[i / ROW_BLOCK] += errors[i];
  status = fit_sum(f, chains, 1, rss);
  arena_free(&arena);
  return status;
}

/* A row block on rank 0, from the rank that has it. */
struct block_out {
  idx *counts;
  idx *atoms, *all_atoms;
  float *codes, *all_codes, *all_score;
};

static int block_gather(const struct fit *f, struct block_out *o, gidx block, idx n)
{
  struct comm *c = f->c;
  gidx entries = (gidx)f->s, at = (block - f->block_first) * ROW_BLOCK * f->s;
  size_t unit = (size_t)f->s * sizeof *o->atoms;
  int mine = block >= f->block_first && block < f->block_first + f->blocks;
  for (int r = 0; r < c->size; r++) {
    gidx first, blocks;
    fit_share(f->total, c->size, r, &first, &blocks);
    o->counts[r] = block >= first && block < first + blocks ? n : 0;
  }
  if (!mine) at = 0;
  for (gidx i = 0; mine && i < n * entries * f->d; i++)
    o->codes[i] = (float)f->codes[at * f->d + i];
  TRY(comm_gather(c, f->atoms + at, o->counts, unit, o->all_atoms));
  TRY(comm_gather(c, f->score + at, o->counts, unit, o->all_score));
  return comm_gather(c, o->codes, o->counts, unit * (size_t)f->d, o->all_codes);
}

static int blocks_write(const struct fit *f, const struct support_sink *sink, struct block_out *o,
                        struct worker *worker)
{
  for (gidx first = 0; first < f->total; first += ROW_BLOCK) {
    idx n = f->total - first < ROW_BLOCK ? (idx)(f->total - first) : ROW_BLOCK;
    struct support_block block = {first, n, f->s, f->d, o->all_atoms, o->all_score, o->all_codes};
    TRY(block_gather(f, o, first / ROW_BLOCK, n));
    TRY(comm_agree(f->c, f->c->rank ? OK : support_access(worker, f->c->deadline, sink, &block)));
  }
  return OK;
}

int fit_supports_write(const struct fit *f, const struct support_sink *sink)
{
  struct arena arena = {0};
  struct block_out o = {0};
  struct worker worker;
  gidx entries = (gidx)ROW_BLOCK * f->s;
  int status = arena_take(&arena, &o.counts, f->c->size, sizeof *o.counts);
  if (!status) status = arena_take(&arena, &o.all_atoms, entries, sizeof *o.all_atoms);
  if (!status) status = arena_take(&arena, &o.all_score, entries, sizeof *o.all_score);
  if (!status) status = arena_take(&arena, &o.codes, entries * f->d, sizeof *o.codes);
  if (!status) status = arena_take(&arena, &o.all_codes, entries * f->d, sizeof *o.all_codes);
  if (!status) status = worker_open(&worker);
  TRY(comm_agree(f->c, status));
  TRY(blocks_write(f, sink, &o, &worker));
  worker_close(&worker);
  arena_free(&arena);
  return OK;
}

int fit_frames_write(const struct fit *f, const struct matrix_sink *sink)
{
  struct arena arena = {0};
  struct worker worker;
  float *atoms = NULL;
  gidx frame = (gidx)f->d * f->p, piece = 1 + (4 << 20) / frame;
  TRY(arena_take(&arena, &atoms, piece * frame, sizeof *atoms));
  TRY(worker_open(&worker));
  for (gidx a = 0; a < f->k; a += piece) {
    gidx count = f->k - a < piece ? f->k - a : piece;
    for (gidx i = 0; i < count * frame; i++) atoms[i] = (float)f->frames[a * frame + i];
    TRY(matrix_access(&worker, f->c->deadline, (struct matrix_access){sink, a, count, atoms}));
  }
  worker_close(&worker);
  arena_free(&arena);
  return OK;
}
