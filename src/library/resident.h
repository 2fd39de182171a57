/* SPDX-License-Identifier: BSD-3-Clause
 * Supports and codes of rows that are in the memory of the handle's device.  They are not copied to
 * the host.
 *
 * Floor: library; included by src/library only.  Not collective. */
#ifndef LIBRARY_RESIDENT_H
#define LIBRARY_RESIDENT_H

#include "library/library_impl.h"

/* The arrays of a call, in device memory. */
struct resident {
  const float *x; /* [n][p] */
  idx *atoms;     /* [n][s] written */
  float *codes;   /* [n][s] written */
};

/* Encode rows first .. first + n - 1 of a call, with n <= h->rows.  Uses the memory of
 * routed_alloc().  ERR_INPUT: a value or a score is not finite. */
int resident_encode(struct sagitta *h, const struct resident *r, gidx first, idx n);

#endif
