/* SPDX-License-Identifier: BSD-3-Clause
 * What a rank finds of its partition of the queries.
 *
 * Floor: harvest; used by attribute.c alone. */
#ifndef HARVEST_ATTRIBUTE_PARTITION_H
#define HARVEST_ATTRIBUTE_PARTITION_H

#include "harvest/attribute.h"
#include "harvest/harvest_impl.h"

/* What the contributions of a pair have to sum to. */
struct wanted_sum {
  real value;
  real size; /* of its terms: what rounding is relative to */
  int is_compared;
  int is_zero; /* at most: the routed score is a positive part */
};

struct attributed_partition {
  const struct attribute_task *task;
  const float *atoms; /* [k][p] of unit norm */
  const real *mean;   /* [k] inner products of the mean with them */
  struct harvest harvest;
  struct harvest_task rows;
  struct supports supports;
  struct top_rows top;       /* of the pairs; top.k counts them */
  real *part;                /* [pairs][heads] of each head, unless a GPU has all positions */
  real *sum;                 /* [pairs] */
  struct wanted_sum *wanted; /* [pairs] */
  gidx list_room, code_room, part_room, sum_room, wanted_room;
  gidx compared, beyond; /* of all shares so far, as is all below */
  gidx longest;
  real error;
  uint64_t row_terms, support_terms;
};

/* For one of so many ranks.  attributed_partition_free() follows also when it fails. */
int attributed_partition_alloc(struct attributed_partition *s, int ranks);
void attributed_partition_free(struct attributed_partition *s);

/* top, sum <- of the pairs of queries first .. first + count - 1; *key <- the row of a failure.
 * Not collective. */
int attributed_partition_run(struct attributed_partition *s, gidx first, idx count, gidx *key);

#endif
