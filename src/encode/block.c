/* SPDX-License-Identifier: BSD-3-Clause
 * A block from its rows to its results, one round after another; all on the main thread. */
#include "encode/block.h"

#include "base/num.h"
#include "base/status.h"
#include "encode/steps.h"

/* Go to the next round that adds atoms. */
static void round_next(struct encode *e, struct block_in_flight *b)
{
  b->entries_begin = b->entries_end;
  while (b->entries_end == b->entries_begin)
    b->entries_end = round_end(e->s, e->task->rounds, ++b->round);
}

/* The next block, whose rows the files worker has read. */
static int block_begin(struct encode *e, struct block_in_flight *b)
{
  gidx share_first, share;
  gidx buffer = e->begun++ % ROW_BUFFERS;
  b->rows = &e->rows[buffer];
  b->first = e->next;
  b->n = encode_block_at(e, e->next);
  e->next += b->n;
  e->result->inputs.rows += e->terms[buffer];
  for (int r = 0; r < e->c->size; r++) {
    comm_share(b->n, e->c->size, r, &share_first, &share);
    b->shares[r] = (idx)share;
    if (r != e->c->rank) continue;
    b->mine_first = (idx)share_first;
    b->mine = (idx)share;
  }
  b->round = b->entries_begin = b->entries_end = b->solved = 0;
  round_next(e, b);
  TRY(step_allgather(e, b, b->rows, 0));
  e->background_job.summed = b->rows->host;
  e->background_job.summed_count = e->task->codes ? b->n : 0;
  return OK;
}

/* Gather the results on rank 0.  The files worker will write them there, and the background worker
 * of each rank will count its share. */
static int block_finish(struct encode *e, struct block_in_flight *b)
{
  int root = e->c->rank == 0, codes = e->task->codes;
  TRY(step_gather(e, b));
  e->finished = (struct support_block){.first = e->task->sink_first + b->first,
                                       .n = root ? b->n : 0,
                                       .s = e->s,
                                       .d = e->d,
                                       .atoms = b->out_atoms,
                                       .score = b->out_score,
                                       .codes = codes ? b->out_codes : NULL};
  e->background_job.counted =
      (struct support_block){.first = e->task->first + b->first + b->mine_first,
                             .n = b->mine,
                             .s = e->s,
                             .d = e->d,
                             .atoms = b->atoms,
                             .score = b->score,
                             .codes = codes ? e->codes.host : NULL};
  e->background_job.qualities = root && codes ? b->n : 0;
  table_release(b->table, &e->shard, e->max_request);
  e->finished_rows = b->first + b->n;
  b->n = 0;
  return OK;
}

/* From merged lists to what the next round routes, or to the end of the block. */
static int block_advance(struct encode *e, struct block_in_flight *b)
{
  int last = b->entries_end == e->s;
  if (!last || e->task->codes) {
    TRY(step_fetch(e, b));
    TRY(step_codes(e, b, last));
  }
  if (last) return block_finish(e, b);
  TRY(step_allgather(e, b, &b->residual, 1));
  round_next(e, b);
  return OK;
}

/* Where a block would begin with a sum block: is the job to end before it? */
static int stop_look(struct encode *e)
{
  const struct encode_task *t = e->task;
  int stop = 0;
  if (!t->stops || e->next == 0 || e->next >= e->end || e->next % ROW_BLOCK) return OK;
  TRY(t->stops(t->stops_self, e->next, &stop));
  if (stop) e->end = e->next;
  return OK;
}

int block_prepare(struct encode *e, struct block_in_flight *b)
{
  if (b->n > 0) TRY(block_advance(e, b));
  if (b->n > 0) return OK;
  TRY(stop_look(e));
  TRY(files_next(e));
  return e->next < e->end ? block_begin(e, b) : OK;
}
