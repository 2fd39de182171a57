/* SPDX-License-Identifier: BSD-3-Clause
 * Columns are exchanged in rounds: in each round every rank sends one sum block (ROW_BLOCK rows,
 * N.0).  If the ranks of a node share the lists, each rank sends its lists once to each other node.
 * The ranks of a node take turns as receivers. */
#include "fit/all_rows.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "comm/buffers.h"
#include "device/device.h"
#include "refit/state.h"

gidx all_rows_list_bytes(gidx rows, idx s)
{
  return rows * s * (gidx)(sizeof(idx) + sizeof(float));
}

/* The window is the memory that the ranks of a node share: the lists, then the number of the node's
 * first rank. */
static gidx window_bytes(gidx rows, idx s)
{
  return all_rows_list_bytes(rows, s) + (gidx)sizeof(gidx);
}

/* Place the lists in the shared window.  A dry run counts an equal share of it for each rank. */
static int lists_wrap(struct all_rows *a, gidx most)
{
  gidx bytes = most * a->f->s * (gidx)sizeof(idx);
  char *at = a->shared.at, *part;
  if (a->arena.is_dry)
    return arena_alloc(&a->arena, &part, ceil_div(window_bytes(most, a->f->s), a->f->c->local_size),
                       1);
  TRY(buffer_wrap(a->device, &a->slots, at, bytes));
  return buffer_wrap(a->device, &a->codes, at + bytes, bytes);
}

static int lists_alloc(struct all_rows *a, gidx most)
{
  gidx bytes = most * a->f->s * (gidx)sizeof(idx);
  int (*alloc)(struct device *, struct buffer *, gidx) =
      a->f->c->gpus ? buffer_alloc_device : buffer_alloc; /* joined GPUs use no host memory */
  TRY(alloc(a->device, &a->slots, bytes));
  return alloc(a->device, &a->codes, bytes);
}

int all_rows_alloc(struct all_rows *a, gidx most, int is_shared)
{
  const struct refit_state *f = a->f;
  gidx first, columns, p = f->p, size = f->c->size, item = (gidx)sizeof(float);
  comm_partition(p, f->c->size, f->c->rank, &first, &columns);
  a->columns = (idx)columns;
  TRY(buffer_alloc_device(a->device, &a->x, most * columns * item));
  TRY(is_shared ? lists_wrap(a, most) : lists_alloc(a, most));
  gidx block = imin(most, ROW_BLOCK), all = imin(most, size * ROW_BLOCK);
  TRY(buffer_alloc(a->device, &a->packed, block * p * item));
  TRY(buffer_alloc(a->device, &a->came, all * columns * item));
  TRY(arena_alloc(&a->arena, &a->send, size, sizeof *a->send));
  TRY(arena_alloc(&a->arena, &a->receive, size, sizeof *a->receive));
  TRY(arena_alloc(&a->arena, &a->first, size, sizeof *a->first));
  TRY(arena_alloc(&a->arena, &a->here, size, sizeof *a->here));
  TRY(arena_alloc(&a->arena, &a->leader, size, sizeof *a->leader));
  return arena_alloc(&a->arena, &a->place, size, sizeof *a->place);
}

/* leader[r] <- the first rank of the node of rank r; place[r] <- the number of rank r in its node.
 * The first rank of a node writes its own number behind the lists, where the others read it. */
static int nodes_find(struct all_rows *a, gidx most)
{
  struct comm *c = a->f->c;
  gidx *behind = (gidx *)((char *)a->shared.at + all_rows_list_bytes(most, a->f->s));
  if (a->shared.rank == 0) *behind = c->rank;
  TRY(comm_shared_sync(c, &a->shared));
  TRY(comm_allgather_long(c, *behind, a->leader));
  TRY(comm_allgather_long(c, a->shared.rank, a->place));
  for (int r = 0; r < c->size; r++) a->has_others |= a->leader[r] != a->leader[c->rank];
  return OK;
}

int all_rows_open(struct all_rows *a, const struct refit_state *f, struct device *device, gidx most,
                  int is_shared)
{
  *a = (struct all_rows){.f = f, .device = device};
  if (is_shared) TRY(comm_shared_open(f->c, window_bytes(most, f->s), &a->shared));
  TRY(comm_agree(f->c, all_rows_alloc(a, most, is_shared)));
  return is_shared ? nodes_find(a, most) : OK;
}

void all_rows_close(struct all_rows *a)
{
  struct buffer *const all[] = {&a->x, &a->slots, &a->codes, &a->packed, &a->came};
  for (int i = 0; a->device && i < LENGTH(all); i++) buffer_free(a->device, all[i]);
  if (a->shared.state && comm_shared_close(a->f->c, &a->shared)) status_clear();
  arena_free(&a->arena);
  *a = (struct all_rows){0};
}

/* packed <- n own rows, cut into the columns of each rank; send[] <- the count of numbers for each
 * rank. */
static void block_pack(struct all_rows *a, const float *x, idx n)
{
  float *to = a->packed.host;
  gidx p = a->f->p, first, columns;
  for (int r = 0; r < a->f->c->size; r++) {
    comm_partition(p, a->f->c->size, r, &first, &columns);
    a->send[r] = (idx)(n * columns);
    for (idx i = 0; i < n; i++, to += columns)
      memcpy(to, x + i * p + first, (size_t)columns * sizeof *to);
  }
}

/* The number of rows of sum block `block` of a rank; *first <- the first of these rows. */
static idx block_rows(const struct all_rows *a, int rank, gidx block, gidx *first)
{
  gidx n = refit_rows_partition(a->f->total, a->f->c->size, rank, first);
  *first += block * ROW_BLOCK;
  return (idx)imax(imin(n - block * ROW_BLOCK, ROW_BLOCK), 0);
}

/* Copy the received columns to their rows of x. */
static int block_keep(struct all_rows *a, gidx block)
{
  gidx unit = a->columns * (gidx)sizeof(float), at = 0, first;
  for (int r = 0; r < a->f->c->size && unit; r++) {
    gidx n = block_rows(a, r, block, &first);
    const struct buffer from = {.device = (char *)a->came.device + at, .bytes = n * unit};
    const struct gather_job job = {.from = &from, .n = n, .unit = unit, .to = &a->x, .at = first};
    if (n) TRY(device_gather(a->device, &job));
    at += n * unit;
  }
  return OK;
}

int all_rows_columns(struct all_rows *a, const struct update_rows *rows)
{
  struct comm *c = a->f->c;
  gidx first, most = refit_rows_partition(a->f->total, c->size, 0, &first);
  gidx row = (gidx)a->f->p * (gidx)sizeof(float);
  const float *x = rows->x->host;
  for (gidx b = 0; b * ROW_BLOCK < most; b++) {
    idx n = block_rows(a, c->rank, b, &first);
    for (int r = 0; r < c->size; r++)
      a->receive[r] = (idx)(block_rows(a, r, b, &first) * (gidx)a->columns);
    block_pack(a, n ? x + b * ROW_BLOCK * a->f->p : x, n);
    TRY(comm_agree(c, device_put(a->device, &a->packed, 0, n * row)));
    TRY(comm_alltoallv_buffer(c, a->device, &a->packed, a->send, &a->came, a->receive, sizeof *x,
                              0));
    TRY(comm_agree(c, block_keep(a, b)));
  }
  return OK;
}

int all_rows_goes(const struct all_rows *a, int from, int to)
{
  int ranks = 0;
  if (a->leader[from] == a->leader[to]) return 0;
  for (int r = 0; r < a->f->c->size; r++) ranks += a->leader[r] == a->leader[to];
  return a->place[to] == from % ranks;
}

/* For each rank of another node, one rank of this node receives the lists.  Send buffers are the
 * rank's own arrays: Open MPI 4.1 treats equal send and receive addresses as MPI_IN_PLACE. */
static int lists_fetch(struct all_rows *a, const struct update_rows *rows)
{
  struct comm *c = a->f->c;
  size_t unit = (size_t)a->f->s * sizeof(idx);
  const struct comm_offsets offsets = {a->first, a->here};
  for (int r = 0; r < c->size; r++) {
    gidx n = refit_rows_partition(a->f->total, c->size, r, &a->here[r]);
    a->first[r] = 0;
    a->send[r] = all_rows_goes(a, c->rank, r) ? a->f->n : 0;
    a->receive[r] = all_rows_goes(a, r, c->rank) ? (idx)n : 0;
  }
  TRY(comm_alltoallv_at(c, rows->slots->host, a->send, a->slots.host, a->receive, unit, &offsets));
  return comm_alltoallv_at(c, rows->codes->host, a->send, a->codes.host, a->receive, unit,
                           &offsets);
}

static int lists_copy(struct all_rows *a, const struct update_rows *rows)
{
  const struct refit_state *f = a->f;
  size_t bytes = (size_t)f->n * (size_t)f->s * sizeof(idx);
  gidx at = f->first * f->s * (gidx)sizeof(idx);
  TRY(comm_shared_sync(f->c, &a->shared)); /* others may still read older lists */
  if (bytes) memcpy((char *)a->slots.host + at, rows->slots->host, bytes);
  if (bytes) memcpy((char *)a->codes.host + at, rows->codes->host, bytes);
  if (a->has_others) TRY(lists_fetch(a, rows));
  return comm_shared_sync(f->c, &a->shared);
}

int all_rows_lists(struct all_rows *a, const struct update_rows *rows)
{
  struct comm *c = a->f->c;
  size_t unit = (size_t)a->f->s * sizeof(idx);
  gidx first;
  if (a->shared.state) return lists_copy(a, rows);
  for (int r = 0; r < c->size; r++)
    TRY(comm_count(refit_rows_partition(a->f->total, c->size, r, &first), &a->receive[r]));
  TRY(comm_allgather_parts(c, a->device, rows->slots, &a->slots, a->receive, unit));
  return comm_allgather_parts(c, a->device, rows->codes, &a->codes, a->receive, unit);
}
