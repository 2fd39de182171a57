/* SPDX-License-Identifier: BSD-3-Clause
 * A tally is the state of an encode job without a device.  Rows are counted by the same functions,
 * in the same order, as in encode_run(). */
#include "encode/tally.h"

#include <stdlib.h>

#include "base/num.h"
#include "base/status.h"
#include "encode/encode_impl.h"

struct tally {
  struct encode e;
  struct comm alone;
  struct encode_task task;
};

static int arrays_alloc(struct encode *e)
{
  const struct encode_task *t = e->task;
  gidx *density;
  TRY(arena_alloc(&e->result->arena, &density, t->atoms->k, sizeof *density));
  e->result->density = density;
  TRY(arena_alloc(&e->arena, &e->shift, e->p, sizeof *e->shift));
  gidx ended = e->block / ROW_BLOCK + 1;
  TRY(arena_alloc(&e->arena, &e->out_ended, 2 * ended * e->p, sizeof *e->out_ended));
  TRY(arena_alloc(&e->arena, &e->ended_blocks, 1, sizeof *e->ended_blocks));
  return statistics_init(&e->statistics, &e->result->arena, &e->group, 1, e->p, e->shift,
                         t->first / ROW_BLOCK, t->rows->n);
}

int tally_open(struct tally **tally, const struct encode_task *task, uint64_t dictionary,
               struct encode_result *result)
{
  TRY(struct_alloc(tally, sizeof **tally));
  struct tally *t = *tally;
  *result = (struct encode_result){.device = "cpu", .inputs.dictionary = dictionary};
  t->alone = (struct comm){.size = 1};
  t->task = *task;
  t->task.no_cosine = 1; /* there is no device to compute it */
  encode_init(&t->e, &t->task, &t->alone, result);
  TRY(arrays_alloc(&t->e));
  return encode_shift(encode_whole(task), task->mean, t->e.shift);
}

int tally_add(struct tally *tally, const struct tally_rows *r)
{
  struct encode *e = &tally->e;
  const struct encode_task *t = e->task;
  struct support_block block = {.first = t->first + r->first,
                                .n = r->n,
                                .s = e->s,
                                .d = e->d,
                                .atoms = r->atoms,
                                .score = r->score,
                                .codes = r->codes};
  e->result->inputs.rows += r->terms;
  e->ended_blocks[0] = statistics_blocks(r->first, r->n, t->rows->n);
  statistics_rows(&e->statistics, r->x, r->first, r->n, e->out_ended);
  e->qualities = r->quality;
  results_count(e, &block, r->n);
  block.first = t->sink_first + r->first;
  e->next = r->first + r->n;
  return t->sink->write(t->sink->self, &block);
}

int tally_close(struct tally *tally, int status)
{
  if (!tally) return status;
  struct encode *e = &tally->e;
  e->end = e->next;
  if (!status) status = encode_finish(e);
  arena_free(&e->arena);
  free(tally);
  return status;
}
