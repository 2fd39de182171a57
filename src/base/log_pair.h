/* SPDX-License-Identifier: BSD-3-Clause
 * Determinants as pairs (m, e), value m 2^e, and their logarithm with the same bits on every
 * machine (N.13).
 *
 * Floor: base.  Formulas: doc/numerics.md. */
#ifndef BASE_LOG_PAIR_H
#define BASE_LOG_PAIR_H

#include "base/types.h"

/* m in [1/2, 1); the unit is (1/2, 1); of a failed determinant m is NaN and e 0. */
struct log_pair {
  real m;
  gidx e;
};

extern const struct log_pair log_pair_unit;
struct log_pair log_pair_failed(void);

/* a times b, one rounding; a times pivot > 0, finite, which may be subnormal. */
struct log_pair log_pair_times(struct log_pair a, struct log_pair b);
struct log_pair log_pair_pivot(struct log_pair a, real pivot);

/* fl(fl(e LN2) + log(m)); NaN (0x7FF8000000000000) of a failed one. */
real log_pair_value(struct log_pair a);

/* Natural logarithm of x > 0, finite, by additions, multiplications and divisions alone, so that it
 * has the same bits everywhere; off by less than one unit in the last place. */
real log_portable(real x);

/* The NaN that is written to files: 0x7FF8000000000000. */
real nan_canonical(void);

#endif
