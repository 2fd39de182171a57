/* SPDX-License-Identifier: BSD-3-Clause
 * Two dictionaries compared: comparison.h5.
 *
 * Floor: io.  Used by rank 0 alone; not collective. */
#ifndef IO_COMPARISON_H
#define IO_COMPARISON_H

#include "io/outputs.h"
#include "io/schema.h"
#include "model/pairs.h"
#include "model/matches.h"

extern const struct file_kind comparison_kind;

/* The results of comparing two dictionaries; index 0 is the first one. */
struct comparison {
  const struct matches *of[2];
  uint64_t hash[2];
  int nonnegative; /* cosines keep their sign; 0: absolute values */
  real above;      /* an atom counts as matched if its |cosine| is above this bound */
  gidx mutual;     /* pairs of atoms that are nearest to each other, with |cosine| > `above` */
  const struct pairs *pairs; /* NULL: pairs were not computed */
};
/* Write and publish. */
int comparison_write(const char *path, const struct comparison *c, const struct run_fact *facts,
                     int n_facts);

#endif
