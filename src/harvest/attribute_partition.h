/* SPDX-License-Identifier: BSD-3-Clause
 * The results of a rank for its share of the queries.
 *
 * Floor: harvest; used by attribute.c alone. */
#ifndef HARVEST_ATTRIBUTE_PARTITION_H
#define HARVEST_ATTRIBUTE_PARTITION_H

#include "harvest/attribute.h"
#include "harvest/harvest_impl.h"

/* The value that the contributions of a pair must sum to. */
struct wanted_sum {
  real value;
  real size; /* sum of its terms' absolute values: rounding is relative to it */
  int is_compared;
  int is_zero; /* 1: the routed score is a positive part, and 0: the sum may be below `value` */
};

struct attributed_partition {
  const struct attribute_task *task;
  const float *atoms; /* [k][p] of unit norm */
  const real *mean;   /* [k] inner products of the mean with the atoms */
  struct harvest harvest;
  struct harvest_task rows;
  struct supports supports;
  struct top_rows top;       /* of the pairs; top.k counts them */
  real *part;                /* [pairs][heads] sums of each head; empty if a GPU has all
                              * positions */
  real *sum;                 /* [pairs] */
  struct wanted_sum *wanted; /* [pairs] */
  gidx list_room, code_room, part_room, sum_room, wanted_room;
  gidx compared, beyond; /* of all shares so far, like the members below */
  gidx longest;
  real error;
  uint64_t row_terms, support_terms;
};

/* Allocate for one of `ranks` ranks.  Call attributed_partition_free() also when it fails. */
int attributed_partition_alloc(struct attributed_partition *s, int ranks);
void attributed_partition_free(struct attributed_partition *s);

/* top, sum <- the results for the pairs of queries first .. first + count - 1; *key <- the row of a
 * failure.  Not collective. */
int attributed_partition_run(struct attributed_partition *s, gidx first, idx count, gidx *key);

#endif
