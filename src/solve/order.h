/* SPDX-License-Identifier: BSD-3-Clause
 * Which rank reads and which solves each system of a batch; every rank knows it from the shapes
 * alone.
 *
 * Floor: solve.  Not collective. */
#ifndef SOLVE_ORDER_H
#define SOLVE_ORDER_H

#include "model/systems.h"

/* Consecutive systems that are read, solved and written together. */
struct system_batch {
  gidx first, end;     /* systems */
  int *reader, *owner; /* [end - first] the rank that reads a system, and the rank that solves it */
  int stays;           /* these are the same for all systems */
};

/* The end of the batch that begins with system `first`: at least one system, otherwise at most
 * `rows` rows and `max` systems. */
gidx batch_end(const struct systems_shape *s, gidx first, gidx rows, gidx max);

/* Deal the batch's systems to ranks.  Readers get consecutive runs of about equal size.  The same
 * ranks solve them, unless one would have much more work than others.  Then owners are dealt round
 * robin, in order of falling work; of equal work the lower system first.  order[end - first] is
 * work space. */
struct work_order {
  double work;
  gidx system;
};
void batch_deal(const struct systems_shape *s, int ranks, struct system_batch *b,
                struct work_order *order);

/* The multiply-adds of system a, about. */
double system_work(const struct systems_shape *s, gidx a);

/* The part of a dealt batch that a rank reads: systems *first .. *end - 1. */
void batch_part(const struct system_batch *b, int rank, gidx *first, gidx *end);

#endif
