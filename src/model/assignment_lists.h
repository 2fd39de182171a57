/* SPDX-License-Identifier: BSD-3-Clause
 * The columns of each row over which an assignment is sought first.
 *
 * Floor: model. */
#ifndef MODEL_ASSIGNMENT_LISTS_H
#define MODEL_ASSIGNMENT_LISTS_H

#include "model/assignment_impl.h"

struct list {
  idx count, room;
  idx *column; /* [room], ascending in no order; owned */
  gidx *cost;  /* [room] */
};

struct lists {
  const struct assignment *a;
  struct list *row; /* [k] */
  idx *added;       /* [k] */
  int no_memory;
};

/* Add to each row's list the columns that the duals do not fit, those that fit worst; the first
 * time the best of each row.  *added: how many; 0: u and v prove the matching optimal. */
int lists_price(struct lists *l, gidx *added);
void lists_free(struct lists *l);

#endif
