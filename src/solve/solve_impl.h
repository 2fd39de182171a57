/* SPDX-License-Identifier: BSD-3-Clause
 * The state of a solve job, which its files share.
 *
 * Floor: solve; included by src/solve only.  solve.h says in which order to read the files. */
#ifndef SOLVE_SOLVE_IMPL_H
#define SOLVE_SOLVE_IMPL_H

#include "base/memory.h"
#include "base/worker.h"
#include "device/arrow.h"
#include "solve/files.h"
#include "solve/order.h"
#include "solve/solve.h"

/* The largest parts that a rank has of a batch, in reals; but systems and moved count the systems
 * of a batch, and batches counts all batches. */
struct batch_sizes {
  gidx systems, batches;
  gidx read, solve;  /* systems that the rank reads, and solves */
  gidx own_t, own_b; /* steps of rows and of borders of the systems that it solves */
  gidx all_t, all_b; /* steps of rows and of borders of the whole batch */
  /* Of batches that do not stay: systems that the rank sends and receives; steps of rows and of
   * borders that rank 0 puts in order, and the number of their systems. */
  gidx sent, received, moved_t, moved_b, moved;
  gidx largest; /* the largest system that the rank solves, with its steps */
};

struct solve {
  const struct solve_task *task;
  const struct systems_shape *shape;
  struct comm *c;
  struct solve_result *out;
  struct device device;
  struct worker reader, writer;
  struct files_job files;
  struct arena arena;
  struct batch_sizes sizes;
  gidx end;                  /* as in the result */
  struct system_batch batch; /* dealt last, to be read or solved */
  struct work_order *order;
  real *read[SLOTS]; /* a part of a batch, as it is read */
  struct systems_block block[SLOTS];
  real *send, *recv;   /* with several ranks only */
  real *own_t, *own_b; /* steps of this rank's items, if these do not go to the results directly */
  idx *send_counts, *recv_counts, *item_counts;
  struct arrow_item *items;
  gidx *mine;                     /* system of each item */
  struct arrow_outcome *outcomes; /* of this rank's items */
  struct arrow_outcome *all_outcomes;
  real *all_t, *all_b; /* rank 0 of several: steps of a batch that does not stay */
  struct batch_results results[SLOTS];
};

/* Reals in the steps of systems a .. end - 1. */
static inline gidx steps_reals(const struct systems_shape *s, gidx a, gidx end)
{
  return s->g[end] - s->g[a] + (s->border[end] - s->border[a]);
}

#endif
