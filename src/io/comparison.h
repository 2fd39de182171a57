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

/* What is written of two dictionaries, the first and the second. */
struct comparison {
  const struct matches *of[2];
  uint64_t hash[2];
  int nonnegative; /* cosines count with their sign */
  real above;
  gidx mutual;
  const struct pairs *pairs; /* NULL: they were not sought */
};
/* Write and publish. */
int comparison_write(const char *path, const struct comparison *c, const struct run_fact *facts,
                     int n_facts);

#endif
