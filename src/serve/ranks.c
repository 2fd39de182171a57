/* SPDX-License-Identifier: BSD-3-Clause
 * If there are several ranks, rank 0 broadcasts each call that computes or moves data.  The ranks
 * have consecutive rows of a step, in the order of ranks.  After each call of their lanes, all
 * ranks agree on the status. */
#include "serve/ranks.h"

#include <string.h>

#include "base/status.h"

enum call { CALL_WAIT, CALL_PUT, CALL_ADVANCE, CALL_PASS, CALL_END };

/* What rank 0 broadcasts. */
struct order {
  int32_t call, slot, n;
};

static int is_alone(const struct ranks *r)
{
  return r->c->size == 1;
}

/* Returns the number of rows of this rank, if a step has n rows.  r->counts[] <- the number of rows
 * of each rank, times `unit`. */
static idx part_find(struct ranks *r, gidx n, idx unit)
{
  gidx first, count, own = 0;
  for (int i = 0; i < r->c->size; i++) {
    comm_partition(n, r->c->size, i, &first, &count);
    r->counts[i] = (idx)(count * unit);
    if (i == r->c->rank) own = count;
  }
  return (idx)own;
}

static int arrays_alloc(struct ranks *r)
{
  gidx entries = (gidx)r->block * r->s;
  if (is_alone(r)) return OK;
  TRY(arena_alloc(&r->arena, &r->counts, r->c->size, sizeof *r->counts));
  TRY(arena_alloc(&r->arena, &r->received, r->c->size, sizeof *r->received));
  if (r->c->rank) return OK;
  TRY(arena_alloc(&r->arena, &r->atoms, entries, sizeof *r->atoms));
  TRY(arena_alloc(&r->arena, &r->score, entries, sizeof *r->score));
  TRY(arena_alloc(&r->arena, &r->codes, entries * r->d, sizeof *r->codes));
  return arena_alloc(&r->arena, &r->quality, r->block, sizeof *r->quality);
}

int ranks_open(struct ranks *r, const struct encode_task *task, struct comm *c)
{
  *r = (struct ranks){.c = c,
                      .p = task->rows->p,
                      .s = task->top_s,
                      .d = task->atoms->d,
                      .block = task->block,
                      .has_codes = task->codes};
  if (!is_alone(r)) TRY(comm_split(c, c->rank, &r->alone));
  TRY(comm_agree(c, arrays_alloc(r)));
  return comm_agree(c, lane_open(&r->lane, task, is_alone(r) ? c : &r->alone));
}

int ranks_close(struct ranks *r)
{
  TRY(comm_agree(r->c, lane_close(r->lane)));
  arena_free(&r->arena);
  return is_alone(r) ? OK : comm_unite(r->c, &r->alone);
}

/* Send the rows of a step from rank 0 to all ranks, and copy them to the devices.  Rank 0 computes
 * the first rows, which stay in place. */
static int put_run(struct ranks *r, int slot, idx n)
{
  idx own = part_find(r, n, r->p), mine = r->counts[0];
  float *rows = lane_rows(r->lane, slot);
  memset(r->received, 0, (size_t)r->c->size * sizeof *r->received);
  r->counts[0] = 0;
  if (r->c->rank) {
    r->received[0] = own * r->p;
    memset(r->counts, 0, (size_t)r->c->size * sizeof *r->counts);
  }
  TRY(comm_alltoallv(r->c, rows + mine, r->counts, rows, r->received, sizeof *rows));
  return comm_agree(r->c, own ? lane_put(r->lane, slot, 0, own) : OK);
}

/* Gather the results of n rows on rank 0.  *out <- these results; only rank 0 may read them. */
static int results_gather(struct ranks *r, const struct support_block *mine, gidx n,
                          struct support_block *out)
{
  size_t entry = (size_t)r->s * 4;
  part_find(r, n, 1);
  const struct comm_part parts[] = {
      {mine->atoms, r->atoms, r->counts, entry},
      {mine->score, r->score, r->counts, entry},
      {mine->codes, r->codes, r->counts, entry * (size_t)r->d},
      {lane_quality(r->lane), r->quality, r->counts, sizeof *r->quality},
  };
  TRY(comm_gather_parts(r->c, parts, r->has_codes ? LENGTH(parts) : 2));
  *out = (struct support_block){.n = (idx)n,
                                .s = r->s,
                                .d = r->d,
                                .atoms = r->atoms,
                                .score = r->score,
                                .codes = r->has_codes ? r->codes : NULL};
  return OK;
}

/* A lane without rows of a block does not report that the block ends.  So all ranks learn it from
 * the lanes that have rows of the block. */
static int advance_run(struct ranks *r, struct support_block *out)
{
  struct support_block mine;
  gidx n = r->rows[r->which];
  TRY(comm_agree(r->c, lane_advance(r->lane, &mine)));
  uint64_t ends = mine.n > 0;
  TRY(comm_or(r->c, &ends, 1));
  *out = (struct support_block){0};
  if (!ends) return OK;
  r->rows[r->which] = 0;
  return results_gather(r, &mine, n, out);
}

static int pass_run(struct ranks *r, int slot, idx n)
{
  if (n) r->rows[r->which] = n;
  r->which = !r->which;
  return comm_agree(r->c, lane_pass(r->lane, slot, n ? part_find(r, n, 1) : 0));
}

static int order_run(struct ranks *r, struct order *o, struct support_block *out)
{
  TRY(comm_broadcast(r->c, o, 1, sizeof *o));
  switch ((enum call)o->call) {
  case CALL_PUT:
    return put_run(r, o->slot, o->n);
  case CALL_ADVANCE:
    return advance_run(r, out);
  case CALL_PASS:
    return pass_run(r, o->slot, o->n);
  default:
    return OK;
  }
}

int ranks_follow(struct ranks *r)
{
  struct support_block none;
  struct order o = {CALL_WAIT, 0, 0};
  while (o.call != CALL_END) TRY(order_run(r, &o, &none));
  return OK;
}

int ranks_take_rows(const struct ranks *r)
{
  return is_alone(r) && lane_is_gpu(r->lane);
}

int ranks_put(struct ranks *r, int slot, idx n)
{
  struct order o = {CALL_PUT, slot, n};
  return is_alone(r) ? lane_put(r->lane, slot, 0, n) : order_run(r, &o, NULL);
}

int ranks_advance(struct ranks *r, struct support_block *out)
{
  struct order o = {CALL_ADVANCE, 0, 0};
  return is_alone(r) ? lane_advance(r->lane, out) : order_run(r, &o, out);
}

int ranks_is_free(const struct ranks *r)
{
  return is_alone(r) ? lane_is_free(r->lane) : r->rows[r->which] == 0;
}

int ranks_pass(struct ranks *r, int slot, idx n)
{
  struct order o = {CALL_PASS, slot, n};
  return is_alone(r) ? lane_pass(r->lane, slot, n) : order_run(r, &o, NULL);
}

int ranks_run(struct ranks *r, idx n, struct support_block *out)
{
  if (is_alone(r)) return lane_run(r->lane, n, out);
  TRY(ranks_pass(r, 0, n));
  do {
    TRY(ranks_pass(r, 0, 0)); /* a pass of the other block, which has no rows */
    TRY(ranks_advance(r, out));
    if (!out->n) TRY(ranks_pass(r, 0, 0));
  } while (!out->n);
  return OK;
}

struct row_quality *ranks_quality(struct ranks *r)
{
  return is_alone(r) ? lane_quality(r->lane) : r->quality;
}

int ranks_wait(struct ranks *r)
{
  struct order o = {CALL_WAIT, 0, 0};
  return is_alone(r) ? OK : order_run(r, &o, NULL);
}

int ranks_end(struct ranks *r)
{
  struct order o = {CALL_END, 0, 0};
  return is_alone(r) ? OK : order_run(r, &o, NULL);
}
