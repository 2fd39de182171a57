/* SPDX-License-Identifier: BSD-3-Clause
 * Systems travel from who read them to who solves them, results to rank 0. */
#include "solve/exchange.h"

#include <string.h>

#include "base/status.h"

/* Copy a system to `to`, its arrays one after another; returns the end. */
static real *system_pack(const struct arrow_system *a, real *to)
{
  gidx d = a->d, k = a->k;
  const real *parts[] = {a->h, a->b, a->g, a->c, a->g_b};
  const gidx sizes[] = {a->n * d * d, a->n * d * k, a->n * d, k * k, k};
  for (int i = 0; i < LENGTH(parts); to += sizes[i++])
    memcpy(to, parts[i], (size_t)sizes[i] * sizeof *to);
  return to;
}

int solve_alltoallv(struct solve *s, const struct systems_block *block)
{
  const struct system_batch *b = &s->batch;
  real *to = s->send;
  for (int r = 0; r < s->c->size; r++) {
    real *from = to;
    for (gidx a = block->first; a < block->first + block->count; a++) {
      if (b->owner[a - b->first] != r) continue;
      struct arrow_system system = system_view(s->shape, block, a);
      to = system_pack(&system, to);
    }
    s->send_counts[r] = (idx)(to - from);
    s->recv_counts[r] = 0;
  }
  for (gidx a = b->first; a < b->end; a++)
    if (b->owner[a - b->first] == s->c->rank)
      s->recv_counts[b->reader[a - b->first]] += (idx)systems_reals(s->shape, a, a + 1);
  return comm_alltoallv(s->c, s->send, s->send_counts, s->recv, s->recv_counts, sizeof(real));
}

/* Rank 0 puts every rank's steps and outcomes in the order of the systems. */
static void results_place(struct solve *s, struct batch_results *to)
{
  const struct systems_shape *shape = s->shape;
  const struct system_batch *b = &s->batch;
  const real *from = s->all_steps;
  gidx next = 0;
  for (int r = 0; r < s->c->size; r++)
    for (gidx a = b->first; a < b->end; a++) {
      if (b->owner[a - b->first] != r) continue;
      gidx t = shape->g[a + 1] - shape->g[a], k = shape->border[a + 1] - shape->border[a];
      memcpy(to->step_t + (shape->g[a] - shape->g[b->first]), from, (size_t)t * sizeof *from);
      memcpy(to->step_b + (shape->border[a] - shape->border[b->first]), from + t,
             (size_t)k * sizeof *from);
      to->outcomes[a - b->first] = s->all_outcomes[next++];
      from += t + k;
    }
}

int solve_gather(struct solve *s, struct batch_results *to)
{
  const struct system_batch *b = &s->batch;
  idx *counts = s->recv_counts;
  for (int r = 0; r < s->c->size; r++) counts[r] = s->item_counts[r] = 0;
  for (gidx a = b->first; a < b->end; a++) {
    int owner = b->owner[a - b->first];
    counts[owner] += (idx)steps_reals(s->shape, a, a + 1);
    s->item_counts[owner]++;
  }
  TRY(comm_gather(s->c, s->steps, counts, sizeof(real), s->all_steps));
  TRY(comm_gather(s->c, s->outcomes, s->item_counts, sizeof *s->outcomes, s->all_outcomes));
  if (s->c->rank == 0) results_place(s, to);
  return OK;
}
