/* SPDX-License-Identifier: BSD-3-Clause
 * The bound of the certified filter (C.3 to C.5, C.8), as screen_bound() of model/screen.h.
 * C11 that is also CUDA C++.
 *
 * Floor: kernels. */
#ifndef SCREEN_BOUND_H
#define SCREEN_BOUND_H

#ifdef __CUDACC__
#define BOUND static __device__ inline
#else
#include <math.h>
#define BOUND static inline
#endif

struct screen_norms {
  double norm, norm_short, error; /* upper bounds of |v|, |v~|, |v - v~| */
  /* Upper bound of a mean of norms: of v's first column, its first two columns, .. all columns. */
  double mean;
};

/* (C.3) The growth of n roundings to f32, for n <= 2^20. */
BOUND double bound_growth(int n)
{
  double nu = n * 0x1p-24;
  return nu * (1 + nu) * (1 + 0x1p-30);
}

/* Bounds of the error of a chain of p terms, and of a sum of the matrix unit, for a vector of norm
 * 1.  Each is the smaller of two bounds: by all terms (C.3, C.8), and by the partial sums (C.3a,
 * C.8a). */
BOUND double bound_chain(struct screen_norms row, int p)
{
  double g = bound_growth(p);
  return fmin(g * row.norm, 0x1p-24 * row.norm + g * (1 + g) * row.mean);
}
BOUND double bound_unit(struct screen_norms row, int p, double gamma)
{
  double steps = 16.0 / p * row.norm_short + (1 + gamma) * (row.mean + row.error);
  return gamma * fmin(row.norm_short, steps);
}

/* A bound on the difference between the coarse size of a frame for a row and the exact one.  The
 * norms of the frames and of their errors are at most max_norm and max_error.  The matrix unit errs
 * by at most bound_unit() |d~| per vector. */
BOUND double bound_reach(struct screen_norms row, double max_norm, double max_error, int d, int p,
                         double gamma)
{
  double size = row.norm_short * (1 + gamma), beta = size, rest = p * 0x1p-149 * sqrt((double)d);
  double alpha = row.error + bound_chain(row, p) + bound_unit(row, p, gamma);
  if (d > 1) {
    double g = bound_growth(d);
    alpha = (1 + g) * alpha + g * size;
    beta = (1 + g) * beta + g * size;
    rest = (1 + g) * rest + sqrt(d * 0x1p-149);
  }
  return (alpha * max_norm + beta * max_error + rest) * (1 + 0x1p-28);
}

#endif
