/* SPDX-License-Identifier: BSD-3-Clause
 * The estimates with which the compiler's sqrt() and division begin: about 20 bits, with the
 * constants of the compiler in their lower halves. */
#ifndef ROOT_ESTIMATE_H
#define ROOT_ESTIMATE_H

/* 1 / sqrt(x), from the upper half of x.  The instruction MUFU.RSQ64H reads only this half. */
static __device__ inline double root_estimate(double x)
{
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  return __hiloint2double(__double2hiint(y), __double2hiint(x) - 0x3500000);
}

/* 1 / x */
static __device__ inline double inverse_estimate(double x)
{
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  return __hiloint2double(__double2hiint(y), 1);
}

#endif
