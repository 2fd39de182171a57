/* SPDX-License-Identifier: BSD-3-Clause
 * Rows of other nodes come in pieces to all ranks, and the first of each node keeps them. */
#include "fit/gram.h"

#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"

enum { PIECE_BYTES = 16 << 20, TOLD_BYTES = 64 << 20 /* less is not worth a line */ };

gidx gram_bytes(idx k)
{
  return (gidx)k * k * (gidx)sizeof(real);
}

/* Behind the matrix is the number of the node's first rank. */
static gidx window_bytes(idx k)
{
  return gram_bytes(k) + (gidx)sizeof(gidx);
}

/* Some MPI cannot share memory, and says so where it is asked for some. */
static int sharing_try(struct comm *c)
{
  struct comm_shared some;
  TRY(comm_agree(c, comm_shared_open(c, (gidx)sizeof(gidx), &some)));
  return comm_shared_close(c, &some);
}

int gram_choose(struct comm *c, gidx bytes, const char *how, int on_cpu, int *shares)
{
  uint64_t several = c->local_size > 1, other = !on_cpu;
  *shares = 0;
  if (!strcmp(how, "no") || c->size == 1) return OK;
  TRY(comm_or(c, &several, 1));
  TRY(comm_or(c, &other, 1));
  if (!several || other) return OK;
  int status = comm_agree(c, comm_shared_check(c, bytes));
  if (!status && strcmp(how, "yes")) status = sharing_try(c);
  *shares = !status;
  if ((status != ERR_MEMORY && status != ERR_COMM) || !strcmp(how, "yes")) return status;
  if (bytes >= TOLD_BYTES)
    log_warn("each rank holds the Gram matrix itself, because the ranks of a node cannot share it: "
             "%s",
             status_message());
  status_clear();
  comm_recover(c);
  return OK;
}

/* leader[] <- the first rank of everybody's node, which it writes behind the matrix. */
static int leaders_find(struct gram *g)
{
  gidx *behind = (gidx *)((char *)g->shared.at + gram_bytes(g->k));
  if (g->shared.rank == 0) *behind = g->c->rank;
  TRY(gram_sync(g));
  return comm_allgather_long(g->c, *behind, g->leader);
}

static int arrays_alloc(struct gram *g)
{
  TRY(arena_alloc(&g->arena, &g->leader, g->c->size, sizeof *g->leader));
  return arena_alloc(&g->arena, &g->counts, g->c->size, sizeof *g->counts);
}

/* Is there another node? */
static int has_others(const struct gram *g)
{
  for (int r = 0; r < g->c->size; r++)
    if (g->leader[r] != g->leader[g->c->rank]) return 1;
  return 0;
}

int gram_open(struct gram *g, struct comm *c, idx k)
{
  gidx first, count, row = (gidx)k * (gidx)sizeof(real);
  *g = (struct gram){.c = c, .k = k};
  TRY(comm_shared_open(c, window_bytes(k), &g->shared));
  g->at = g->shared.at;
  comm_partition(k, g->shared.ranks, g->shared.rank, &first, &count);
  g->write_first = (idx)first;
  g->write_count = (idx)count;
  TRY(comm_agree(c, arrays_alloc(g)));
  TRY(leaders_find(g));
  g->rows = (idx)imin(1 + PIECE_BYTES / row, k);
  int others = has_others(g);
  TRY(comm_agree(c, others ? arena_alloc(&g->arena, &g->piece, g->rows * (gidx)k, sizeof *g->piece)
                           : OK));
  if (gram_bytes(k) >= TOLD_BYTES)
    log_info("update  a Gram matrix of %.1f MB once a node, which its %d ranks share",
             1e-6 * (double)gram_bytes(k), g->shared.ranks);
  return OK;
}

void gram_close(struct gram *g)
{
  if (g->shared.state && comm_shared_close(g->c, &g->shared)) status_clear();
  arena_free(&g->arena);
  *g = (struct gram){0};
}

int gram_sync(struct gram *g)
{
  return g->shared.state ? comm_shared_sync(g->c, &g->shared) : OK;
}

/* Rows first .. first + n - 1 of rank `owner`, which has them at `mine`, go to the other nodes. */
static int piece_send(struct gram *g, int owner, const real *mine, gidx first, idx n)
{
  gidx row = g->k;
  memset(g->counts, 0, (size_t)g->c->size * sizeof *g->counts);
  g->counts[owner] = n;
  TRY(comm_allgather(g->c, mine, g->counts, (size_t)row * sizeof *mine, g->piece));
  int keeps = g->shared.rank == 0 && g->leader[owner] != g->leader[g->c->rank];
  if (keeps) memcpy(g->at + first * row, g->piece, (size_t)(n * row) * sizeof *mine);
  return OK;
}

int gram_gather(struct gram *g)
{
  gidx begin, rows;
  for (int r = 0; r < g->c->size && g->piece; r++) {
    comm_partition(g->k, g->c->size, r, &begin, &rows);
    for (gidx i = 0; i < rows; i += g->rows) {
      const real *mine = g->at + (begin + i) * g->k;
      TRY(piece_send(g, r, mine, begin + i, (idx)imin(g->rows, rows - i)));
    }
  }
  return gram_sync(g);
}

void gram_clear(struct gram *g, const unsigned char *cleared)
{
  for (gidx a = g->write_first; a < g->write_first + g->write_count; a++) {
    real *row = g->at + a * g->k;
    if (cleared[a])
      memset(row, 0, (size_t)g->k * sizeof *row);
    else
      for (idx b = 0; b < g->k; b++)
        if (cleared[b]) row[b] = 0;
  }
}
