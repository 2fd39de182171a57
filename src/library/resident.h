/* SPDX-License-Identifier: BSD-3-Clause
 * Supports of rows in the memory of the handle's device, which the host does not see.
 *
 * Floor: library; included by src/library only.  Not collective. */
#ifndef LIBRARY_RESIDENT_H
#define LIBRARY_RESIDENT_H

#include "library/library_impl.h"

/* The arrays of a call, in device memory. */
struct resident {
  const float *x; /* [n][p] */
  idx *atoms;     /* [n][s] written */
  float *codes;
};

/* Encode n rows, at most h->rows, from `first` on, with the memory of routed.h.  ERR_INPUT: a value
 * or a score is not finite. */
int resident_encode(struct sagitta *h, const struct resident *r, gidx first, idx n);

#endif
