/* SPDX-License-Identifier: BSD-3-Clause
 * The solve stage from inside: its state, and what its files do for each other.
 *
 * solve.c runs over the batches, solve_memory.c has their arrays, solve_files.c what goes on behind
 * the computation, solve_exchange.c what ranks send each other, solve_batch.c who does what. */
#ifndef STAGE_SOLVE_INSIDE_H
#define STAGE_SOLVE_INSIDE_H

#include "base/memory.h"
#include "base/worker.h"
#include "stage/solve.h"
#include "stage/solve_batch.h"

enum { SYSTEMS_MOST = 1 << 16, TURNS = 2 };

/* Results of a batch, on rank 0 (of all its systems). */
struct results {
  real *step_t, *step_b;
  struct arrow_outcome *outcomes;
  gidx first, count; /* count 0: nothing to write */
};

/* What the largest batch of this rank wants. */
struct room {
  gidx systems, batches;
  gidx read, send, solve, steps, all_t, all_b;
};

struct solve {
  const struct solve_task *task;
  const struct systems_shape *shape;
  struct comm *c;
  struct solve_result *out;
  struct device device;
  struct worker worker;
  struct arena arena;
  struct room room;
  struct batch batch; /* being solved */
  struct batch_order *order;
  real *read[TURNS]; /* a part of a batch as it was read */
  struct systems_block block[TURNS];
  real *send, *recv, *steps; /* several ranks only */
  idx *send_counts, *recv_counts, *item_counts;
  struct arrow_item *items;
  gidx *mine; /* system of each item */
  struct arrow_outcome *outcomes, *all_outcomes;
  real *all_steps; /* rank 0 of several */
  struct results results[TURNS];
};

static inline gidx steps_reals(const struct systems_shape *s, gidx a, gidx end)
{
  return s->g[end] - s->g[a] + (s->border[end] - s->border[a]);
}

/* The batch that begins at system `first`, dealt. */
void solve_deal(struct solve *s, gidx first);

/* Everything that is held while batches are solved; devices and workers are opened. */
int solve_take(struct solve *s);

/* Arrays of consecutive systems, one behind the other in one piece of memory; system a of them. */
struct systems_block block_view(const struct systems_shape *s, gidx first, gidx end, real *at);
struct arrow_system system_view(const struct systems_shape *s, const struct systems_block *b,
                                gidx a);

/* Begin to read this rank's part of the batch at `first`, where there is one, and to write the
 * results of `turn`; or to write all that is left. */
int solve_files_start(struct solve *s, gidx first, int turn);
int solve_files_finish(struct solve *s, int turn);
int solve_files_wait(struct solve *s);

/* Send what was read to the owners; recv <- this rank's systems, ascending. */
int solve_exchange(struct solve *s, const struct systems_block *block);
/* Steps and outcomes of all ranks to rank 0, in the order of the systems. */
int solve_gather(struct solve *s, struct results *to);

#endif
