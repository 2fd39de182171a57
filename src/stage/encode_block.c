/* SPDX-License-Identifier: BSD-3-Clause
 * The turn of a block.  Two blocks take turns, so that while the device routes one the host merges
 * the lists of the other; a block that is alone has a turn without work between two of its own. */
#include "base/status.h"
#include "stage/encode_steps.h"

/* Go to the next round that adds atoms. */
static void round_next(struct encode *e, struct flight *f)
{
  f->have = f->now;
  while (f->now == f->have) f->now = round_end(e->s, e->task->rounds, ++f->round);
}

/* The next block, whose rows the worker for files has read. */
static int block_begin(struct encode *e, struct flight *f)
{
  gidx left = e->task->rows->n - e->next, share_first, share;
  f->rows = &e->rows[e->next / e->block % ROW_BUFFERS];
  f->first = e->next;
  f->n = left < e->block ? (idx)left : e->block;
  e->next += f->n;
  for (int r = 0; r < e->c->size; r++) {
    comm_share(f->n, e->c->size, r, &share_first, &share);
    f->shares[r] = (idx)share;
    if (r != e->c->rank) continue;
    f->mine_first = (idx)share_first;
    f->mine = (idx)share;
  }
  f->round = f->have = f->now = f->solved = 0;
  round_next(e, f);
  TRY(step_gather(e, f, f->rows, 0));
  e->behind_job.summed = f->rows->host;
  e->behind_job.summed_count = e->task->codes ? f->n : 0;
  return OK;
}

/* Results to rank 0; what is left is to write them there, and to count own rows. */
static int block_finish(struct encode *e, struct flight *f)
{
  int root = e->c->rank == 0, codes = e->task->codes;
  TRY(step_collect(e, f));
  e->finished = (struct support_block){.first = f->first,
                                       .n = root ? f->n : 0,
                                       .s = e->s,
                                       .d = e->d,
                                       .atoms = f->out_atoms,
                                       .score = f->out_score,
                                       .codes = codes ? f->out_codes : NULL};
  e->behind_job.collect = (struct support_block){.first = f->first + f->mine_first,
                                                 .n = f->mine,
                                                 .s = e->s,
                                                 .d = e->d,
                                                 .atoms = f->atoms,
                                                 .score = f->score,
                                                 .codes = codes ? e->codes.host : NULL};
  e->behind_job.qualities = root && codes ? f->n : 0;
  table_leave(f->table, &e->tiles, e->wanted);
  e->ended = f->first + f->n;
  f->n = 0;
  return OK;
}

/* From merged lists to what the next round routes, or to the end of the block. */
static int block_advance(struct encode *e, struct flight *f)
{
  int last = f->now == e->s;
  if (!last || e->task->codes) {
    TRY(step_fetch(e, f));
    TRY(step_codes(e, f, last));
  }
  if (last) return block_finish(e, f);
  TRY(step_gather(e, f, &f->residual, 1));
  round_next(e, f);
  return OK;
}

int flight_turn(struct encode *e, struct flight *f, struct flight *other)
{
  int status = OK;
  if (f->n > 0) TRY(block_advance(e, f));
  if (f->n == 0) {
    TRY(files_turn(e));
    if (e->next < e->task->rows->n) TRY(block_begin(e, f));
  }
  TRY(behind_start(e, other));
  if (f->n > 0) status = step_route(e, f);
  TRY(behind_wait(e));
  TRY(status);
  return f->n > 0 ? step_exchange(e, f) : OK;
}
