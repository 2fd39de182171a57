/* SPDX-License-Identifier: BSD-3-Clause
 * The steps of a block in the order of block.c, for a block that is alone in flight. */
#include "encode/lane.h"

#include <stdlib.h>

#include "base/num.h"
#include "base/status.h"
#include "encode/steps.h"
#include "model/access.h"

struct lane {
  struct encode *e;
  struct encode_result result;
};

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

float *lane_rows(struct lane *lane)
{
  return lane->e->rows[0].host;
}

/* A block of these rows, before its first round. */
static void block_set(struct encode *e, struct block_in_flight *b, idx n)
{
  b->rows = &e->rows[0];
  b->superblock_first = b->first = 0;
  b->superblock_rows = b->n = b->mine = n;
  b->mine_first = 0;
  b->shares[0] = n;
  b->round = b->entries_begin = b->entries_end = b->solved = 0;
}

/* Route the block once, and merge. */
static int round_route(struct encode *e, struct block_in_flight *b)
{
  block_round_next(e, b);
  TRY(step_route(e, b));
  TRY(step_alltoallv(e, b));
  TRY(background_start(e, b));
  return background_wait(e);
}

int lane_run(struct lane *lane, idx n, struct support_block *out)
{
  struct encode *e = lane->e;
  struct block_in_flight *b = &e->in_flight[0];
  block_set(e, b, n);
  TRY(device_put(&e->device, b->rows, 0, (gidx)n * e->p * (gidx)sizeof(float)));
  while (b->entries_end < e->s) {
    TRY(round_route(e, b));
    int last = b->entries_end == e->s;
    if (!last || e->task->codes) {
      TRY(step_fetch(e, b));
      step_codes(e, b, last);
    }
    if (!last) TRY(step_allgather(e, b, &b->residual, 1));
    TRY(comm_agree(&e->group, OK));
  }
  table_release(b->table, &e->shard, e->max_request);
  *out = (struct support_block){.n = n,
                                .s = e->s,
                                .d = e->d,
                                .atoms = b->atoms,
                                .score = b->score,
                                .codes = e->task->codes ? e->codes.host : NULL};
  return OK;
}

void lane_center(struct lane *lane, gidx first, gidx n)
{
  const struct encode *e = lane->e;
  rows_center(lane_rows(lane) + first * e->p, n, e->p, e->task->mean);
}

struct row_quality *lane_quality(struct lane *lane)
{
  return lane->e->quality.host;
}

const char *lane_variant(const struct lane *lane)
{
  return lane->e->device.variant;
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
