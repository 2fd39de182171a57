/* SPDX-License-Identifier: BSD-3-Clause
 * All steps run on the main thread, one round after another.  encode.h explains blocks and
 * superblocks. */
#include "encode/block.h"

#include "base/num.h"
#include "base/status.h"
#include "encode/steps.h"

void block_round_next(struct encode *e, struct block_in_flight *b)
{
  b->entries_begin = b->entries_end;
  while (b->entries_end == b->entries_begin)
    b->entries_end = round_end(e->s, e->task->rounds, ++b->round);
}

/* Set this group's block in the superblock that b has just begun, and the shares of all ranks. */
static void block_partition(struct encode *e, struct block_in_flight *b)
{
  gidx first, count;
  encode_group_partition(e, b->superblock_rows, e->number, &first, &count);
  b->first = b->superblock_first + first;
  b->n = (idx)count;
  for (int r = 0; r < e->c->size; r++) {
    gidx partition_first;
    encode_rank_partition(e, b->superblock_rows, r, &partition_first, &count);
    b->shares[r] = (idx)count;
    if (r != e->c->rank) continue;
    b->mine_first = (idx)(partition_first - first);
    b->mine = (idx)count;
  }
}

/* Begin the next superblock, whose rows the files worker has read. */
static int block_begin(struct encode *e, struct block_in_flight *b)
{
  gidx buffer = e->begun++ % ROW_BUFFERS;
  b->rows = &e->rows[buffer];
  b->superblock_first = e->next;
  b->superblock_rows = encode_superblock_at(e, e->next);
  e->next += b->superblock_rows;
  block_partition(e, b);
  e->result->inputs.rows += e->terms[buffer];
  b->round = b->entries_begin = b->entries_end = b->solved = 0;
  block_round_next(e, b);
  if (b->n) TRY(step_allgather(e, b, b->rows, 0));
  e->background_job.summed = e->task->codes && b->n ? b : NULL;
  return OK;
}

/* Gather the results on the ranks that write them; their writer or files worker will do so.  The
 * background worker of each rank will count the rank's share. */
static int block_finish(struct encode *e, struct block_in_flight *b)
{
  int root = e->c->rank == 0, codes = e->task->codes, own = e->task->by_ranks;
  gidx first = own ? b->first + b->mine_first : b->superblock_first;
  TRY(step_gather(e, b));
  e->finished = (struct support_block){.first = e->task->sink_first + first,
                                       .n = own    ? b->mine
                                            : root ? b->superblock_rows
                                                   : 0,
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
  e->background_job.qualities = root && codes ? b->superblock_rows : 0;
  table_release(b->table, &e->shard, e->max_request);
  e->finished_rows = b->superblock_first + b->superblock_rows;
  b->superblock_rows = b->n = 0;
  return OK;
}

static int is_last(const struct encode *e, const struct block_in_flight *b)
{
  return b->entries_end == e->s;
}

/* Solve the codes of the supports so far.  Before another round, give the group the residuals,
 * which the round routes. */
static int block_advance(struct encode *e, struct block_in_flight *b)
{
  int last = is_last(e, b);
  if (b->n && (!last || e->task->codes)) {
    TRY(step_fetch(e, b));
    step_codes(e, b, last);
  }
  if (last) return OK;
  if (b->n) TRY(step_allgather(e, b, &b->residual, 1));
  block_round_next(e, b);
  return OK;
}

uint64_t encode_stop_asked(const struct encode *e)
{
  const struct encode_task *t = e->task;
  if (!t->stops.asked || e->next == 0 || e->next >= e->end || e->next % ROW_BLOCK) return 0;
  return t->stops.asked(t->stops.self);
}

int block_cycle(struct encode *e, struct block_in_flight *b)
{
  int ends = b->superblock_rows > 0 && is_last(e, b), begins = b->superblock_rows == 0 || ends;
  if (b->superblock_rows > 0 && !comm_failure_is_common(&e->group))
    TRY(comm_defer(&e->group, block_advance(e, b)));
  if (begins && !comm_failure(e->c)) comm_record(e->c, files_wait(e));
  uint64_t asked = begins ? encode_stop_asked(e) : 0;
  TRY(comm_agree_flags(e->c, OK, 0, &asked));
  if (ends) TRY(block_finish(e, b));
  if (!begins) return OK;
  if (asked) {
    e->end = e->next;
    e->task->stops.stopped(e->task->stops.self, asked);
  }
  TRY(files_start(e)); /* fails only if the program is wrong */
  if (e->next < e->end) TRY(comm_defer(&e->group, block_begin(e, b)));
  return OK;
}
