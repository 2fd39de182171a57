/* SPDX-License-Identifier: BSD-3-Clause
 * Systems go from the ranks that read them to the ranks that solve them, results to rank 0. */
#include "solve/exchange.h"

#include <string.h>

#include "base/status.h"

/* Copy the arrays of a system one after another to `to`; returns the end. */
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

/* Rank 0: put steps and outcomes, which are in the order of ranks, in the order of the systems. */
static void results_scatter(const struct solve *s, struct batch_results *to)
{
  const struct systems_shape *shape = s->shape;
  const struct system_batch *b = &s->batch;
  const real *from_t = s->all_t, *from_b = s->all_b;
  const struct arrow_outcome *from = s->all_outcomes;
  for (int r = 0; r < s->c->size; r++)
    for (gidx a = b->first; a < b->end; a++) {
      if (b->owner[a - b->first] != r) continue;
      gidx t = shape->g[a + 1] - shape->g[a], k = shape->border[a + 1] - shape->border[a];
      memcpy(to->step_t + (shape->g[a] - shape->g[b->first]), from_t, (size_t)t * sizeof(real));
      memcpy(to->step_b + (shape->border[a] - shape->border[b->first]), from_b,
             (size_t)k * sizeof(real));
      to->outcomes[a - b->first] = *from++;
      from_t += t;
      from_b += k;
    }
}

int solve_gather(struct solve *s, const struct arrow_job *job, struct batch_results *to)
{
  const struct systems_shape *shape = s->shape;
  const struct system_batch *b = &s->batch;
  idx *of_t = s->recv_counts, *of_b = s->send_counts, *items = s->item_counts;
  for (int r = 0; r < s->c->size; r++) of_t[r] = of_b[r] = items[r] = 0;
  for (gidx a = b->first; a < b->end; a++) {
    int owner = b->owner[a - b->first];
    of_t[owner] += (idx)(shape->g[a + 1] - shape->g[a]);
    of_b[owner] += (idx)(shape->border[a + 1] - shape->border[a]);
    items[owner]++;
  }
  const real *own_t = job->count ? job->items[0].step_t : s->own_t;
  const real *own_b = job->count ? job->items[0].step_b : s->own_b;
  const struct comm_part parts[] = {
      {own_t, b->stays ? to->step_t : s->all_t, of_t, sizeof(real)},
      {own_b, b->stays ? to->step_b : s->all_b, of_b, sizeof(real)},
      {s->outcomes, b->stays ? to->outcomes : s->all_outcomes, items, sizeof *s->outcomes}};
  TRY(comm_gather_parts(s->c, parts, LENGTH(parts)));
  if (s->c->rank == 0 && !b->stays) results_scatter(s, to);
  return OK;
}
