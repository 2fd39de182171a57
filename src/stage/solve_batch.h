/* SPDX-License-Identifier: BSD-3-Clause
 * Who reads and who solves the systems of a batch: known to every rank from the shapes alone.
 *
 * Floor: stage.  Not collective. */
#ifndef STAGE_SOLVE_BATCH_H
#define STAGE_SOLVE_BATCH_H

#include "model/systems.h"

struct batch {
  gidx first, end;     /* systems */
  int *reader, *owner; /* [end - first] rank */
};

/* The batch that begins at `first`: at least one system, else at most `rows` rows and `most`
 * systems. */
gidx batch_end(const struct systems_shape *s, gidx first, gidx rows, gidx most);

/* Readers in consecutive runs of about equal size; owners by falling work, ties by number.  order
 * is [end - first] of work. */
struct batch_order {
  double work;
  gidx system;
};
void batch_deal(const struct systems_shape *s, int ranks, struct batch *b,
                struct batch_order *order);

/* The part of a dealt batch that a rank reads: consecutive systems. */
void batch_part(const struct batch *b, int rank, gidx *first, gidx *end);

/* Multiply-adds of a system, about. */
double system_work(const struct systems_shape *s, gidx a);

#endif
