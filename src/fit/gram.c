/* SPDX-License-Identifier: BSD-3-Clause
 * Rounds are explained in gram.h.  Between joined GPUs the next round is sent while the current one
 * is used. */
#include "fit/gram.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "comm/buffers.h"
#include "device/device.h"

enum { TOLD_BYTES = 64 << 20 /* no warning if fewer bytes cannot be shared */ };

gidx gram_slab_bytes = 1 << 28;

gidx gram_bytes(idx k)
{
  return (gidx)k * k * (gidx)sizeof(real);
}

static gidx block_bytes(idx k)
{
  return (gidx)NORMAL_BLOCK * k * (gidx)sizeof(real);
}

static idx blocks_of(idx k)
{
  return (idx)ceil_div(k, NORMAL_BLOCK);
}

/* The largest number of blocks of a round. */
static idx blocks_at_once(const struct comm *c, idx k)
{
  return (idx)imin(imin(c->size, blocks_of(k)), imax(gram_slab_bytes / block_bytes(k), 1));
}

gidx gram_window_bytes(const struct comm *c, idx k)
{
  return blocks_at_once(c, k) * block_bytes(k);
}

/* Some MPI libraries cannot share memory.  Only a try shows whether this one can. */
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
    log_warn("each rank has the atoms and codes of all rows itself, because the ranks of a node "
             "cannot share memory: %s",
             status_message());
  status_clear();
  comm_recover(c);
  return OK;
}

/* The number of matrix rows of block `block`. */
static idx block_rows(const struct gram *g, idx block)
{
  return (idx)imax(imin(g->k - (gidx)block * NORMAL_BLOCK, NORMAL_BLOCK), 0);
}

static struct normal_own own_find(const struct gram *g)
{
  int size = g->c->size, rank = g->c->rank;
  struct normal_own own = {rank * NORMAL_BLOCK, 0, size * NORMAL_BLOCK};
  for (idx b = rank; b < blocks_of(g->k); b += size) own.count += block_rows(g, b);
  return own;
}

/* Allocate for the blocks of a round and of the next round.  Memory that the ranks of a node share
 * has the blocks of one round; a dry run counts an equal share of it for each rank. */
static int slabs_alloc(struct gram *g, int is_shared)
{
  gidx bytes = g->at_once * block_bytes(g->k);
  char *part;
  if (is_shared && g->arena.is_dry)
    return arena_alloc(&g->arena, &part, ceil_div(bytes, g->c->local_size), 1);
  if (is_shared) return buffer_wrap(g->device, &g->slab[0], g->shared.at, bytes);
  for (int i = 0; i < 2; i++)
    TRY((g->c->gpus ? buffer_alloc_device : buffer_alloc)(g->device, &g->slab[i], bytes));
  return OK;
}

int gram_alloc(struct gram *g, int is_shared)
{
  gidx size = g->c->size;
  int many = size > 1;
  g->own = own_find(g);
  g->at_once = blocks_at_once(g->c, g->k);
  /* Joined GPUs exchange without host memory, and one rank exchanges nothing. */
  TRY((many && !g->c->gpus ? buffer_alloc : buffer_alloc_device)(
      g->device, &g->rows, (gidx)g->own.count * g->k * (gidx)sizeof(real)));
  if (many) TRY(slabs_alloc(g, is_shared));
  TRY(arena_alloc(&g->arena, &g->send, size, sizeof *g->send));
  TRY(arena_alloc(&g->arena, &g->counts, size, sizeof *g->counts));
  TRY(arena_alloc(&g->arena, &g->zero, size, sizeof *g->zero));
  return arena_alloc(&g->arena, &g->here, size, sizeof *g->here);
}

int gram_open(struct gram *g, struct comm *c, struct device *device, idx k,
              const struct all_rows *nodes)
{
  *g = (struct gram){.c = c, .device = device, .k = k, .nodes = nodes};
  if (nodes) TRY(comm_shared_open(c, gram_window_bytes(c, k), &g->shared));
  return comm_agree(c, gram_alloc(g, nodes != NULL));
}

void gram_close(struct gram *g)
{
  if (g->device) buffer_free(g->device, &g->rows);
  for (int i = 0; g->device && i < 2; i++) buffer_free(g->device, &g->slab[i]);
  if (g->shared.state && comm_shared_close(g->c, &g->shared)) status_clear();
  free(g->held);
  arena_free(&g->arena);
  *g = (struct gram){0};
}

/* A round has blocks first .. end - 1.  They belong to consecutive ranks, and each is block number
 * `turn` of its rank. */
struct round {
  idx first, end, turn;
};

/* The round that begins with block `first`; counts[] <- the rows that each rank sends. */
static struct round round_of(struct gram *g, idx first)
{
  idx size = g->c->size, turn = first / size, most = (idx)imin(blocks_of(g->k), (turn + 1) * size);
  struct round o = {first, (idx)imin(first + g->at_once, most), turn};
  for (idx r = 0; r < size; r++) {
    idx b = turn * size + r;
    g->counts[r] = b >= o.first && b < o.end ? block_rows(g, b) : 0;
  }
  return o;
}

/* The rows that this rank sends in the round. */
static struct buffer own_view(const struct gram *g, const struct round *o)
{
  gidx at = o->turn * block_bytes(g->k);
  return (struct buffer){.host = g->rows.host ? (char *)g->rows.host + at : NULL,
                         .device = (char *)g->rows.device + at,
                         .bytes = (gidx)g->counts[g->c->rank] * g->k * (gidx)sizeof(real)};
}

static int round_use(struct gram *g, const struct round *o, const struct buffer *rows,
                     gram_use *use, void *self)
{
  idx first = o->first * NORMAL_BLOCK;
  idx count = (idx)imin(g->k - first, (o->end - o->first) * (gidx)NORMAL_BLOCK);
  if (!comm_failure(g->c)) comm_record(g->c, use(self, rows, first, count));
  return OK;
}

static int round_begin(struct gram *g, const struct round *o, struct buffer *slab, gidx *turn)
{
  const struct buffer own = own_view(g, o);
  const struct comm_exchange part = {&own, slab, g->counts, (size_t)g->k * sizeof(real)};
  return comm_allgather_begin(g->c, g->device, &part, 1, turn);
}

/* In each step every rank uses the blocks of a round, while it receives the blocks of the next
 * round. */
static int rounds_exchange(struct gram *g, gram_use *use, void *self)
{
  struct round next = round_of(g, 0);
  gidx turn = 0;
  TRY(round_begin(g, &next, &g->slab[0], &turn));
  for (int i = 0; next.first < blocks_of(g->k); i++) {
    const struct round now = next;
    TRY(comm_allgather_end(g->c, g->device, turn));
    next = round_of(g, now.end);
    if (next.first < blocks_of(g->k)) TRY(round_begin(g, &next, &g->slab[(i + 1) % 2], &turn));
    TRY(round_use(g, &now, &g->slab[i % 2], use, self));
  }
  return OK;
}

/* For each block of another node, one rank of this node receives the block, into the shared
 * memory. */
static int blocks_fetch(struct gram *g, const struct round *o, const struct buffer *own)
{
  struct comm *c = g->c;
  const struct comm_offsets offsets = {g->zero, g->here};
  for (int r = 0; r < c->size; r++) {
    g->zero[r] = 0;
    g->here[r] = (gidx)(o->turn * c->size + r - o->first) * NORMAL_BLOCK;
    if (!g->counts[r]) g->here[r] = 0;
    g->send[r] = all_rows_goes(g->nodes, c->rank, r) ? g->counts[c->rank] : 0;
  }
  for (int r = 0; r < c->size; r++)
    if (!all_rows_goes(g->nodes, r, c->rank)) g->counts[r] = 0;
  return comm_alltoallv_at(c, own->host, g->send, g->slab[0].host, g->counts,
                           (size_t)g->k * sizeof(real), &offsets);
}

static int rounds_copy(struct gram *g, gram_use *use, void *self)
{
  struct comm *c = g->c;
  for (struct round o = {0}; o.end < blocks_of(g->k);) {
    o = round_of(g, o.end);
    const struct buffer own = own_view(g, &o);
    gidx at = (o.turn * c->size + c->rank - o.first) * block_bytes(g->k);
    TRY(comm_shared_sync(c, &g->shared)); /* others may still read the round before */
    if (own.bytes) memcpy((char *)g->slab[0].host + at, own.host, (size_t)own.bytes);
    if (g->nodes->has_others) TRY(blocks_fetch(g, &o, &own));
    TRY(comm_shared_sync(c, &g->shared));
    TRY(round_use(g, &o, &g->slab[0], use, self));
  }
  return OK;
}

int gram_pass(struct gram *g, gram_use *use, void *self)
{
  if (g->c->size == 1) return use(self, &g->rows, 0, g->k);
  TRY(g->shared.state ? rounds_copy(g, use, self) : rounds_exchange(g, use, self));
  return comm_agree(g->c, OK);
}

/* *view <- the own rows with a host side, which is allocated if g->rows has none. */
static int rows_view(struct gram *g, struct buffer *view)
{
  *view = g->rows;
  if (view->host) return OK;
  if (!g->held) g->held = memory_zeroed((size_t)imax(view->bytes, 1));
  CHECK(g->held, ERR_MEMORY, "cannot allocate %lld bytes", (long long)view->bytes);
  view->host = g->held;
  return OK;
}

static int rows_fetch(struct gram *g, struct buffer *view)
{
  TRY(rows_view(g, view));
  return device_get(g->device, view, 0, view->bytes);
}

/* Each step of the loop gathers one block of every rank; in the last step some ranks may have no
 * block. */
int gram_get(struct gram *g, real *all)
{
  struct comm *c = g->c;
  struct buffer view;
  gidx block = (gidx)NORMAL_BLOCK * g->k;
  TRY(comm_agree(c, rows_fetch(g, &view)));
  for (idx b = 0; b < blocks_of(g->k); b += c->size) {
    const real *own = (const real *)view.host + b / c->size * block;
    for (int r = 0; r < c->size; r++) g->counts[r] = block_rows(g, b + r);
    TRY(comm_gather(c, own, g->counts, (size_t)g->k * sizeof *own,
                    c->rank ? NULL : all + b * block));
  }
  return OK;
}

int gram_put(struct gram *g, const real *all)
{
  struct comm *c = g->c;
  struct buffer view;
  gidx block = (gidx)NORMAL_BLOCK * g->k;
  TRY(comm_agree(c, rows_view(g, &view)));
  for (idx b = 0; b < blocks_of(g->k); b += c->size) {
    real *own = (real *)view.host + b / c->size * block;
    for (int r = 0; r < c->size; r++) {
      g->send[r] = c->rank ? 0 : block_rows(g, b + r);
      g->counts[r] = r ? 0 : block_rows(g, b + c->rank);
    }
    TRY(comm_alltoallv(c, c->rank ? NULL : all + b * block, g->send, own, g->counts,
                       (size_t)g->k * sizeof *own));
  }
  return comm_agree(c, device_put(g->device, &view, 0, view.bytes));
}
