/* SPDX-License-Identifier: BSD-3-Clause
 * An atom's step: how it changes one column of a row's residual (N.16).
 *
 * -D STEP_D  vectors per frame */
#ifndef STEP_MOVED_H
#define STEP_MOVED_H

enum { D = STEP_D };

/* x plus the old contribution of the atom. */
static __device__ inline double added_back(double x, const double *u_old, const double *t)
{
#pragma unroll
  for (int m = 0; m < D; m++) x = fma(u_old[m], t[m], x);
  return x;
}

/* x minus the new contribution. */
static __device__ inline double moved(double x, const double *u_new, const double *t_new)
{
#pragma unroll
  for (int m = 0; m < D; m++) x = fma(-u_new[m], t_new[m], x);
  return x;
}

#endif
