/* SPDX-License-Identifier: BSD-3-Clause
 * Rank r sums the rows of sum blocks r, r + size, ...  The sums over one block, added row by row,
 * are called its chain.  In each round rank 0 receives the chain of one block from each rank, and
 * adds these chains to the tree of sums (N.0) in the order of the blocks. */
#include "seed/mean.h"

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/sums.h"
#include "base/status.h"
#include "base/team.h"
#include "model/access.h"
#include "model/norms.h"

enum { PATIENCE = 20 }; /* seconds that a request to stop may wait for the end of the pass */

struct mean_work {
  const struct row_source *rows;
  const struct stops *stops;
  double begun; /* when the pass began, in seconds */
  struct row_reader reader;
  real *shift;         /* [p] */
  real *chain;         /* [p] of this rank's block */
  real *chains;        /* [size][p] of all ranks in a round, on rank 0 */
  real *tree;          /* [TREE_LEVELS][p], on rank 0 */
  gidx pushed;         /* blocks in the tree */
  struct norms *norms; /* of this rank's rows; NULL: not wanted */
  real *squares;       /* [rows that are read at a time]; only with norms */
  gidx count;          /* rows that were read last */
};

static int work_alloc(struct mean_work *w, struct arena *arena, const struct comm *c)
{
  gidx p = w->rows->p;
  TRY(row_reader_open(&w->reader, w->rows, arena));
  TRY(arena_alloc(arena, &w->shift, p, sizeof *w->shift));
  TRY(arena_alloc(arena, &w->chain, p, sizeof *w->chain));
  if (w->norms) TRY(arena_alloc(arena, &w->squares, w->reader.most, sizeof *w->squares));
  if (c->rank) return OK;
  TRY(arena_alloc(arena, &w->chains, p * c->size, sizeof *w->chains));
  return arena_alloc(arena, &w->tree, p * TREE_LEVELS, sizeof *w->tree);
}

/* shift[p] <- the mean of the first rows. */
static int shift_find(struct mean_work *w)
{
  struct arena arena = {0};
  struct worker worker = {0};
  float *x;
  int status = arena_alloc(&arena, &x, imin(SHIFT_ROWS, w->rows->n) * w->rows->p, sizeof *x);
  if (!status) status = worker_open(&worker);
  if (!status) status = shift_access(&worker, w->rows, NULL, x, w->shift);
  worker_close(&worker);
  arena_free(&arena);
  return status;
}

enum { TASK_COLUMNS = 64, TASK_ROWS = 256 };

/* A task of a thread: continue the chains of some columns over the rows that were read, or compute
 * the squared norms of some of these rows. */
static void piece_add(void *self, gidx task)
{
  const struct mean_work *w = self;
  const gidx p = w->rows->p, parts = ceil_div(p, TASK_COLUMNS);
  const float *x = w->reader.x;
  if (task < parts) {
    const gidx begin = task * TASK_COLUMNS, end = imin(begin + TASK_COLUMNS, p);
    for (gidx i = 0; i < w->count; i++)
      for (gidx c = begin; c < end; c++) w->chain[c] += x[i * p + c] - w->shift[c];
    return;
  }
  const gidx first = (task - parts) * TASK_ROWS;
  for (gidx i = first; i < imin(first + TASK_ROWS, w->count); i++)
    w->squares[i] = norms_square(x + i * p, (idx)p, w->shift);
}

/* Add the rows that were read to the chains, and to the norms if these are wanted. */
static void rows_add(struct mean_work *w)
{
  const gidx rows = w->norms ? ceil_div(w->count, TASK_ROWS) : 0;
  spare_run(ceil_div(w->rows->p, TASK_COLUMNS) + rows, piece_add, w);
  for (gidx i = 0; i < w->count && w->norms; i++) norms_add(w->norms, w->squares[i]);
}

/* chain[p] <- the sums of x - k over the rows of one sum block, ascending.  Then begin to read the
 * block that is `stride` blocks later. */
static int block_chain(struct mean_work *w, gidx block, gidx stride)
{
  struct row_reader *r = &w->reader;
  idx p = w->rows->p;
  gidx n = w->rows->n, end = imin((block + 1) * ROW_BLOCK, n), count;
  for (idx c = 0; c < p; c++) w->chain[c] = 0;
  for (gidx first = block * ROW_BLOCK; first < end; first += count) {
    count = imin(r->most, end - first);
    gidx next = first + count < end ? first + count : (block + stride) * ROW_BLOCK;
    gidx next_end = first + count < end ? end : imin(next + ROW_BLOCK, n);
    TRY(row_reader_take(r, first, count, next, next_end - next));
    w->count = count;
    rows_add(w);
  }
  return OK;
}

/* The reasons to stop that this rank knows, as bits; 0 if the pass will end within PATIENCE
 * seconds. */
static uint64_t stop_asked(const struct mean_work *w, gidx done, gidx blocks)
{
  double spent = log_seconds() - w->begun;
  double left = done ? spent * (double)(blocks - done) / (double)done : 0;
  return left > PATIENCE ? stops_asked(w->stops) : 0;
}

/* Add sum blocks first .. first + size - 1, one per rank.  Blocks ascend with the ranks, so the
 * lowest rank that fails has the lowest row.  Collective. */
static int round_add(struct comm *c, struct mean_work *w, gidx first, gidx blocks, idx *counts)
{
  gidx mine = first + c->rank;
  uint64_t asked = stop_asked(w, first, blocks);
  TRY(comm_agree_flags(c, mine < blocks ? block_chain(w, mine, c->size) : OK, 0, &asked));
  if (asked)
    return comm_agree(c, status_fail(ERR_STOPPED, __FILE__, __LINE__,
                                     "stopped as asked, while the mean of the rows was taken: "
                                     "nothing of this run is saved, and --resume takes the mean "
                                     "again"));
  for (int r = 0; r < c->size; r++) counts[r] = first + r < blocks;
  TRY(comm_gather(c, w->chain, counts, (size_t)w->rows->p * sizeof(real), w->chains));
  for (int r = 0; c->rank == 0 && r < c->size && counts[r]; r++)
    block_sum_push(w->tree, &w->pushed, w->rows->p, w->chains + (gidx)r * w->rows->p);
  return OK;
}

static void mean_finish(const struct mean_work *w, real *mean)
{
  gidx n = w->rows->n;
  block_sum_total(w->tree, w->pushed, w->rows->p, mean);
  for (idx c = 0; c < w->rows->p; c++) mean[c] = n ? w->shift[c] + mean[c] / (real)n : 0;
}

static int mean_run(struct comm *c, struct mean_work *w, struct arena *arena, real *mean)
{
  idx p = w->rows->p, *counts = NULL;
  gidx n = w->rows->n, blocks = ceil_div(n, ROW_BLOCK);
  int status = work_alloc(w, arena, c);
  if (!status) status = arena_alloc(arena, &counts, c->size, sizeof *counts);
  TRY(comm_agree(c, status));
  TRY(comm_agree(c, c->rank ? OK : shift_find(w)));
  TRY(comm_broadcast(c, w->shift, p, sizeof *w->shift));
  struct progress progress;
  progress_start(&progress, "mean", "rows", n);
  w->begun = log_seconds();
  for (gidx first = 0; first < blocks; first += c->size) {
    TRY(round_add(c, w, first, blocks, counts));
    progress_show(&progress, imin((first + c->size) * ROW_BLOCK, n));
  }
  if (c->rank == 0) mean_finish(w, mean);
  return comm_broadcast(c, mean, p, sizeof *mean);
}

/* Check this rank's share of the rows. */
static int partition_finite(const struct comm *c, struct row_reader *r)
{
  gidx first, count, n;
  comm_partition(r->rows->n, c->size, c->rank, &first, &count);
  for (gidx end = first + count; first < end; first += n) {
    n = imin(r->most, end - first);
    TRY(row_reader_take(r, first, n, first + n, end - first - n));
  }
  return OK;
}

/* Shares ascend with the ranks, so the lowest rank that fails has the lowest row. */
int rows_finite(struct comm *c, const struct row_source *rows)
{
  struct arena arena = {0};
  struct row_reader reader = {0};
  int status = row_reader_open(&reader, rows, &arena);
  if (!status) status = partition_finite(c, &reader);
  row_reader_close(&reader);
  arena_free(&arena);
  return comm_agree(c, status);
}

static int mean_make(struct comm *c, struct mean_work *w, struct arena *arena, real *mean,
                     real *norm)
{
  const struct row_source *rows = w->rows;
  double begun = log_seconds();
  int status = mean_run(c, w, arena, mean);
  row_reader_close(&w->reader);
  TRY(status);
  log_info("mean    rows=%lld columns=%d seconds=%.2f fingerprint=%016llx", (long long)rows->n,
           rows->p, log_seconds() - begun,
           (unsigned long long)fingerprint(mean, rows->p, sizeof *mean, 0));
  if (!w->norms) return OK;
  TRY(comm_sum(c, w->norms->count, NORM_BINS));
  TRY(comm_sum(c, w->norms->sum, NORM_BINS));
  const struct massive_rows massive = norms_massive(w->norms);
  norms_warn(&massive, "these rows");
  if (norm) *norm = massive.median;
  return OK;
}

int mean_compute(struct comm *c, const struct row_source *rows, const struct stops *stops,
                 real *mean)
{
  struct arena arena = {0};
  struct mean_work work = {.rows = rows, .stops = stops};
  int status = mean_make(c, &work, &arena, mean, NULL);
  arena_free(&arena);
  return status;
}

int mean_compute_warned(struct comm *c, const struct row_source *rows, const struct stops *stops,
                        real *mean, real *norm)
{
  struct arena arena = {0};
  struct mean_work work = {.rows = rows, .stops = stops};
  int status = comm_agree(c, arena_alloc(&arena, &work.norms, 1, sizeof *work.norms));
  if (!status) status = mean_make(c, &work, &arena, mean, norm);
  arena_free(&arena);
  return status;
}
