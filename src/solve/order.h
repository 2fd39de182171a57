/* SPDX-License-Identifier: BSD-3-Clause
 * Who reads and who solves the systems of a batch: known to every rank from the shapes alone.
 *
 * Floor: solve.  Not collective. */
#ifndef SOLVE_ORDER_H
#define SOLVE_ORDER_H

#include "model/systems.h"

/* Consecutive systems that are read, solved and written together. */
struct system_batch {
  gidx first, end;     /* systems */
  int *reader, *owner; /* [end - first] rank that reads each, and rank that solves it */
  int stays;           /* these are the same, of all */
};

/* Where the batch ends that begins at `first`: it has at least one system, else at most `rows` rows
 * and max systems. */
gidx batch_end(const struct systems_shape *s, gidx first, gidx rows, gidx max);

/* Deal the batch's systems to ranks: to readers in consecutive runs of about equal size, and to the
 * same ranks to solve, unless one of them would have much more work than others: then to owners in
 * turn by falling work, ties by number.  order[end - first] is workspace. */
struct work_order {
  double work;
  gidx system;
};
void batch_deal(const struct systems_shape *s, int ranks, struct system_batch *b,
                struct work_order *order);

/* About how many multiply-adds system a takes. */
double system_work(const struct systems_shape *s, gidx a);

/* The part of a dealt batch that a rank reads: systems *first .. *end - 1. */
void batch_part(const struct system_batch *b, int rank, gidx *first, gidx *end);

#endif
