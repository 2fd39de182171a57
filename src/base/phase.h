/* SPDX-License-Identifier: BSD-3-Clause
 * Phase times of a stage: calls, seconds and work, for the table at a run's end.
 *
 * Floor: base. */
#ifndef BASE_PHASE_H
#define BASE_PHASE_H

#include "base/types.h"

struct phase {
  const char *name;   /* borrowed */
  const char *unit;   /* of work / 1e9 per second: "GB" or "GMAC"; NULL when work is not counted */
  const char *device; /* borrowed: "cpu" or "cuda" where it could be either; NULL elsewhere */
  int behind;         /* runs in another thread than the one that computes: times overlap */
  gidx calls;
  double seconds;
  double work;  /* bytes or multiply-adds, this rank's */
  double begun; /* log_seconds() of phase_begin */
};

void phase_begin(struct phase *p);
void phase_end(struct phase *p, double work);

#endif
