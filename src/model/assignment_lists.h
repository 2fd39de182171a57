/* SPDX-License-Identifier: BSD-3-Clause
 * For each row a list of some columns; an assignment is sought among these first.
 *
 * Floor: model. */
#ifndef MODEL_ASSIGNMENT_LISTS_H
#define MODEL_ASSIGNMENT_LISTS_H

#include "model/assignment_impl.h"

struct list {
  idx count, room;
  idx *column; /* [room], in no order; owned */
  gidx *cost;  /* [room] */
};

struct lists {
  const struct assignment *a;
  struct list *row; /* [k] */
  idx *added;       /* [k] */
  int no_memory;
};

/* Add to each row's list up to 32 columns whose cost violates the dual variables, those that
 * violate them most.  The first call adds the best columns of each row, and column i to the list of
 * row i.  *added <- the number of added columns; 0: u and v prove that the matching is optimal. */
int lists_price(struct lists *l, gidx *added);
void lists_free(struct lists *l);

#endif
