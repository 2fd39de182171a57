/* SPDX-License-Identifier: BSD-3-Clause
 * Determinants as pairs (m, e), value m 2^e, and their logarithm with the same bits on every
 * machine (N.13).
 *
 * Floor: base.  Formulas: doc/numerics.md. */
#ifndef BASE_DET_PAIR_H
#define BASE_DET_PAIR_H

#include "base/types.h"

/* m is at least 1/2 and below 1; the number 1 has m 1/2 and e 1.  A failed determinant has m NaN
 * and e 0. */
struct det_pair {
  real m;
  gidx e;
};

extern const struct det_pair det_pair_unit;
struct det_pair det_pair_failed(void);

/* det_pair_times() returns a times b, with one rounding.  det_pair_pivot() returns a times `pivot`,
 * which must be finite and > 0, and may be subnormal. */
struct det_pair det_pair_times(struct det_pair a, struct det_pair b);
struct det_pair det_pair_pivot(struct det_pair a, real pivot);

/* The logarithm, fl(fl(e LN2) + log(m)); the canonical NaN if the determinant failed. */
real det_pair_value(struct det_pair a);

/* The natural logarithm of a finite x > 0, by additions, multiplications and divisions only.  So it
 * has the same bits everywhere.  Its error is less than one unit in the last place. */
real log_portable(real x);

#endif
