/* SPDX-License-Identifier: BSD-3-Clause
 * Which rank reads each system of a batch (its reader), and which rank solves it (its owner).
 * Every rank computes this from the shapes of the systems alone.
 *
 * Floor: solve.  Not collective. */
#ifndef SOLVE_ORDER_H
#define SOLVE_ORDER_H

#include "model/systems.h"

/* Consecutive systems that are read, solved and written together. */
struct system_batch {
  gidx first, end;     /* systems */
  int *reader, *owner; /* [end - first] ranks */
  int stays;           /* 1: every system is solved by its reader */
};

/* The end of the batch that begins with system `first`.  A batch has at least one system.  If it
 * has several, they are at most `max` systems with at most `rows` rows in all. */
gidx batch_end(const struct systems_shape *s, gidx first, gidx rows, gidx max);

/* Deal the batch's systems to ranks.  Readers get consecutive runs of about equal size.  Owners are
 * the readers if these have about equal work.  Otherwise owners are dealt round robin, in order of
 * falling work; of equal work the lower system comes first.  order[end - first] is work space. */
struct work_order {
  double work;
  gidx system;
};
void batch_deal(const struct systems_shape *s, int ranks, struct system_batch *b,
                struct work_order *order);

/* About the number of multiply-adds of system a. */
double system_work(const struct systems_shape *s, gidx a);

/* The systems *first .. *end - 1 of a dealt batch are those that a rank reads. */
void batch_part(const struct system_batch *b, int rank, gidx *first, gidx *end);

#endif
