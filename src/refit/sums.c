/* SPDX-License-Identifier: BSD-3-Clause
 * Each rank joins its own sum blocks as far as possible; rank 0 completes the tree. */
#include "refit/sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/block_tree.h"
#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "base/sums.h"
#include "device/refit.h"

/* The nodes of the tree of sums that own sum blocks join to; they are sent to rank 0. */
struct nodes {
  struct arena arena;
  struct block_tree tree;
  idx *counts; /* [size] nodes of each rank */
  real *all;   /* nodes of all ranks, on rank 0 */
};

int refit_sums_depth(gidx rows, int size, int rank)
{
  gidx first, blocks;
  refit_blocks_partition(rows, size, rank, &first, &blocks);
  return (int)imax(block_tree_depth(first, blocks), block_tree_depth(0, ceil_div(rows, ROW_BLOCK)));
}

static int nodes_alloc(struct nodes *w, const struct comm *c, gidx rows, idx width)
{
  gidx first, blocks, total = 0;
  int depth = refit_sums_depth(rows, c->size, c->rank);
  for (int r = 0; r < c->size; r++) {
    refit_blocks_partition(rows, c->size, r, &first, &blocks);
    total += block_nodes_count(first, blocks);
  }
  TRY(arena_alloc(&w->arena, &w->counts, c->size, sizeof *w->counts));
  TRY(block_tree_deep(&w->tree, &w->arena, width, depth));
  return arena_alloc(&w->arena, &w->all, c->rank ? 0 : total * width, sizeof *w->all);
}

static void counts_find(struct nodes *w, const struct comm *c, gidx rows)
{
  gidx first, blocks;
  for (int r = 0; r < c->size; r++) {
    refit_blocks_partition(rows, c->size, r, &first, &blocks);
    w->counts[r] = block_nodes_count(first, blocks);
  }
}

/* Rank 0: join the nodes of all ranks. */
static void nodes_complete(struct nodes *w, const struct comm *c, gidx rows, real *out)
{
  const real *from = w->all;
  w->tree.count = 0;
  for (int r = 0; r < c->size; r++) {
    gidx first, blocks;
    refit_blocks_partition(rows, c->size, r, &first, &blocks);
    for (gidx end = first + blocks; first < end; from += w->tree.width) {
      struct block_node node = block_node_next(first, end);
      first += (gidx)1 << node.level;
      node.present = 1;
      block_tree_push(&w->tree, node, from);
    }
  }
  block_tree_total(&w->tree, out);
}

int refit_sum(struct comm *c, gidx total, const real *chains, idx width, real *out)
{
  struct nodes w = {0};
  gidx first, blocks;
  refit_blocks_partition(total, c->size, c->rank, &first, &blocks);
  TRY(comm_agree(c, nodes_alloc(&w, c, total, width)));
  counts_find(&w, c, total);
  for (gidx i = 0; i < blocks; i++)
    block_tree_push(&w.tree, (struct block_node){0, 1, first + i}, chains + i * width);
  TRY(comm_gather(c, w.tree.values, w.counts, (size_t)width * sizeof(real), w.all));
  if (c->rank == 0) nodes_complete(&w, c, total, out);
  arena_free(&w.arena);
  return OK;
}

struct tss_work {
  struct arena arena;
  const float *x; /* [n][p] */
  gidx n;
  idx p;
  real *shift; /* [p] */
  real *sums;  /* [blocks][2 p] */
  real *total; /* [2 p] */
};

/* A task: for each column of a sum block, the chains of x - shift and of its squares. */
static void columns_chain(void *self, gidx block)
{
  const struct tss_work *w = self;
  const gidx p = w->p;
  real *sum = w->sums + block * 2 * p, *squares = sum + p;
  for (gidx i = block * ROW_BLOCK; i < imin((block + 1) * ROW_BLOCK, w->n); i++)
    for (gidx c = 0; c < p; c++) {
      real t = w->x[i * p + c] - w->shift[c];
      sum[c] += t;
      squares[c] += t * t;
    }
}

static int tss_alloc(struct tss_work *w, gidx n, idx p)
{
  TRY(arena_alloc(&w->arena, &w->shift, p, sizeof *w->shift));
  TRY(arena_alloc(&w->arena, &w->sums, ceil_div(n, ROW_BLOCK) * 2 * p, sizeof *w->sums));
  return arena_alloc(&w->arena, &w->total, 2 * (gidx)p, sizeof *w->total);
}

int refit_tss(struct comm *c, gidx total, const float *x, idx p, real *tss)
{
  gidx first, n = refit_rows_partition(total, c->size, c->rank, &first);
  struct tss_work w = {.x = x, .n = n, .p = p};
  TRY(comm_agree(c, tss_alloc(&w, n, p)));
  if (c->rank == 0) rows_shift(x, (idx)imin(n, SHIFT_ROWS), p, w.shift);
  TRY(comm_broadcast(c, w.shift, p, sizeof *w.shift));
  spare_run(ceil_div(n, ROW_BLOCK), columns_chain, &w);
  TRY(refit_sum(c, total, w.sums, 2 * p, w.total));
  *tss = 0;
  for (idx i = 0; i < p && total; i++)
    *tss += w.total[p + i] - w.total[i] * w.total[i] / (real)total;
  arena_free(&w.arena);
  return OK;
}

int refit_norms(struct comm *c, gidx total, const float *x, idx p, real tss, const char *what,
                struct metrics *m)
{
  gidx first, n = refit_rows_partition(total, c->size, c->rank, &first);
  struct norms *norms = calloc(1, sizeof *norms);
  int status = norms ? OK : status_fail(ERR_MEMORY, __FILE__, __LINE__, "cannot allocate norms");
  if (norms) norms_rows(norms, x, n, p, NULL);
  TRY(comm_agree(c, status));
  status = comm_sum(c, norms->count, NORM_BINS);
  if (!status) status = comm_sum(c, norms->sum, NORM_BINS);
  if (!status) metrics_rows(m, norms, tss);
  free(norms);
  TRY(status);
  if (what) norms_warn(&m->massive, what);
  return OK;
}

struct rss_work {
  struct arena arena;
  real *errors; /* [n] */
  idx *rows;    /* [n] */
  real *chains; /* [blocks] */
};

static int rss_alloc(struct rss_work *w, const struct refit_state *f)
{
  TRY(arena_alloc(&w->arena, &w->errors, f->n, sizeof *w->errors));
  TRY(arena_alloc(&w->arena, &w->rows, f->n, sizeof *w->rows));
  return arena_alloc(&w->arena, &w->chains, f->blocks, sizeof *w->chains);
}

int refit_rss(struct refit_state *f, real *rss)
{
  struct rss_work w = {0};
  *rss = 0;
  int status = rss_alloc(&w, f);
  for (idx i = 0; i < f->n && !status; i++) w.rows[i] = i;
  struct rows_item item = {.rows = w.rows, .n = f->n, .count = 1, .stride = 1, .out = w.errors};
  if (!status) status = device_row_products(&f->device, f->residual, f->p, &item, 1);
  TRY(comm_agree(f->c, status));
  for (idx i = 0; i < f->n; i++) w.chains[i / ROW_BLOCK] += w.errors[i];
  status = refit_sum(f->c, f->total, w.chains, 1, rss);
  arena_free(&w.arena);
  return status;
}

int refit_sums_bytes(const struct refit_state *f, gidx *bytes)
{
  struct tss_work tss = {.arena.is_dry = 1};
  struct rss_work rss = {.arena.is_dry = 1};
  struct nodes nodes = {.arena.is_dry = 1};
  TRY(tss_alloc(&tss, f->n, f->p));
  TRY(rss_alloc(&rss, f));
  TRY(nodes_alloc(&nodes, f->c, f->total, 2 * f->p));
  *bytes = (gidx)nodes.arena.bytes + imax((gidx)tss.arena.bytes, (gidx)rss.arena.bytes);
  return OK;
}
