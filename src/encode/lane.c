/* SPDX-License-Identifier: BSD-3-Clause
 * The steps of encode.c and block.c, for blocks of rows that come at any time. */
#include "encode/lane.h"

#include <stdlib.h>

#include "base/num.h"
#include "base/status.h"
#include "encode/steps.h"
#include "model/access.h"

struct lane {
  struct encode *e;
  struct encode_result result;
  int which; /* the block that the next pass is for */
};

_Static_assert((int)LANE_SLOTS <= (int)ROW_BUFFERS, "a buffer for each slot");

int lane_open(struct lane **lane, const struct encode_task *task, struct comm *c)
{
  TRY(struct_alloc(lane, sizeof **lane));
  struct lane *l = *lane;
  TRY(struct_alloc(&l->e, sizeof *l->e));
  encode_init(l->e, task, c, &l->result);
  TRY(encode_open(l->e));
  TRY(encode_dictionary_name(l->e));
  return encode_confirm_wait(l->e);
}

uint64_t lane_dictionary(const struct lane *lane)
{
  return lane->result.inputs.dictionary;
}

float *lane_rows(struct lane *lane, int slot)
{
  return lane->e->rows[slot].host;
}

void lane_center(struct lane *lane, int slot, gidx first, gidx n)
{
  const struct encode *e = lane->e;
  rows_center(lane_rows(lane, slot) + first * e->p, n, e->p, e->task->mean);
}

int lane_put(struct lane *lane, int slot, gidx first, gidx n)
{
  struct encode *e = lane->e;
  gidx row = e->p * (gidx)sizeof(float);
  return device_put(&e->device, &e->rows[slot], first * row, n * row);
}

int lane_is_gpu(const struct lane *lane)
{
  return device_is_gpu(&lane->e->device);
}

void lane_pin(struct lane *lane, float *x, gidx rows)
{
  host_pin(&lane->e->device, x, rows * lane->e->p * (gidx)sizeof *x);
}

void lane_unpin(struct lane *lane, float *x)
{
  host_unpin(&lane->e->device, x);
}

int lane_put_from(struct lane *lane, int slot, gidx first, gidx n, const float *x)
{
  struct encode *e = lane->e;
  gidx row = e->p * (gidx)sizeof *x;
  struct buffer view = e->rows[slot];
  view.host = (void *)((uintptr_t)x - (uintptr_t)(first * row));
  return device_put(&e->device, &view, first * row, n * row);
}

/* Set the block to these rows, before its first round. */
static void block_set(struct encode *e, struct block_in_flight *b, int slot, idx n)
{
  b->rows = &e->rows[slot];
  b->superblock_first = b->first = 0;
  b->superblock_rows = b->n = b->mine = n;
  b->mine_first = 0;
  b->shares[0] = n;
  b->round = b->entries_begin = b->entries_end = b->solved = 0;
}

int lane_advance(struct lane *lane, struct support_block *out)
{
  struct encode *e = lane->e;
  struct block_in_flight *b = &e->in_flight[lane->which];
  int last = b->entries_end == e->s;
  *out = (struct support_block){0};
  if (b->n == 0) return OK;
  if (!last || e->task->codes) {
    TRY(step_fetch(e, b));
    step_codes(e, b, last);
    TRY(comm_agree(&e->group, OK));
  }
  if (!last) return step_allgather(e, b, &b->residual, 1);
  *out = (struct support_block){.n = b->n,
                                .s = e->s,
                                .d = e->d,
                                .atoms = b->atoms,
                                .score = b->score,
                                .codes = e->task->codes ? e->codes.host : NULL};
  table_release(b->table, &e->shard, e->max_request);
  b->n = b->superblock_rows = 0;
  return OK;
}

int lane_is_free(const struct lane *lane)
{
  return lane->e->in_flight[lane->which].n == 0;
}

int lane_pass(struct lane *lane, int slot, idx n)
{
  struct encode *e = lane->e;
  struct block_in_flight *b = &e->in_flight[lane->which], *other = &e->in_flight[!lane->which];
  if (n) block_set(e, b, slot, n);
  if (b->n) block_round_next(e, b);
  lane->which = !lane->which;
  int merges = other->routed; /* otherwise no thread is woken: that may take longer than a pass */
  if (merges) TRY(background_start(e, other));
  int status = b->n ? step_route(e, b) : OK;
  int merged = merges ? background_wait(e) : OK;
  if (status || merged) return status ? status : merged;
  return b->n ? step_alltoallv(e, b) : OK;
}

int lane_run(struct lane *lane, idx n, struct support_block *out)
{
  TRY(lane_pass(lane, 0, n));
  do {
    TRY(lane_pass(lane, 0, 0)); /* for the other block, which has no rows */
    TRY(lane_advance(lane, out));
    if (!out->n) TRY(lane_pass(lane, 0, 0));
  } while (!out->n);
  return OK;
}

struct row_quality *lane_quality(struct lane *lane)
{
  return lane->e->quality.host;
}

const char *lane_variant(const struct lane *lane)
{
  return lane->e->device.variant;
}

const char *lane_device(const struct lane *lane)
{
  return lane->e->device.kind;
}

int lane_cosine(struct lane *lane, real *cosine)
{
  struct encode *e = lane->e;
  *cosine = nan_canonical();
  if (e->shard.tiling.k > e->task->max_cosine) return OK;
  return shard_cosine(&e->shard, e->c, &e->group, &e->device, e->block, cosine);
}

int lane_close(struct lane *lane)
{
  struct encode *e = lane->e;
  worker_close(&e->files);
  worker_close(&e->background);
  TRY(encode_end(e));
  arena_free(&lane->result.arena);
  free(lane);
  return OK;
}
