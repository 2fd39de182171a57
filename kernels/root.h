/* SPDX-License-Identifier: BSD-3-Clause
 * A root and quotients by it with the bits of sqrt() and of a division, without branches, so that
 * several are under way at a time.  The caller takes the plain ones where numbers are not usual. */
#ifndef ROOT_H
#define ROOT_H

#include "root_estimate.h"

#define LARGEST 1.7976931348623157e308

/* Is the size of x in [2^-400, 2^400)?  Then nothing here leaves the range. */
static __device__ inline int is_usual(double x)
{
  unsigned size = (unsigned)__double2hiint(x) & 0x7fffffffu;
  return size - ((1023u - 400) << 20) < (800u << 20);
}

struct root {
  double l, inverse;
  int is_usual; /* both are right, and quotient() may be used */
};

/* Is this a significand that quotient() can divide by? */
static __device__ inline int is_divisor(double l)
{
  return (__double2hiint(l) & 0xfffff) != 0xfffff;
}

/* The operations of the compiler's sqrt(), whose estimate of 1 / sqrt(x) gives the inverse too: one
 * more step makes its error half a unit of the last place and 2^-100 of it. */
static __device__ inline struct root root_of(double x)
{
  struct root r;
  double y = root_estimate(x);
  double e = fma(x, -(y * y), 1.0);
  y = fma(fma(e, 0.375, 0.5), y * e, y);
  double g = x * y;
  double half = __hiloint2double(__double2hiint(y) - 0x100000, __double2loint(y));
  r.l = fma(fma(g, -g, x), half, g);
  r.inverse = fma(fma(-r.l, y, 1.0), y, y);
  r.is_usual = is_usual(x) && is_divisor(r.l);
  return r;
}

/* As root_of(), from the root. */
static __device__ inline struct root root_known(double l)
{
  struct root r = {l, inverse_estimate(l), is_usual(l) && is_divisor(l)};
  double e = fma(-l, r.inverse, 1.0);
  r.inverse = fma(r.inverse, fma(e, e, e), r.inverse);
  r.inverse = fma(fma(-l, r.inverse, 1.0), r.inverse, r.inverse);
  return r;
}

/* a / r.l, where a and r are usual.  The first quotient is within two units of the last place, the
 * second within half a one and 2^-48 of it, so that its remainder is exact.  Adding remainder times
 * inverse misses a / r.l by less than b 2^-55 units, where b in [1, 2) is the significand of r.l.
 * No quotient is nearer than 2^-53 / b to the middle of two numbers, so this one is rounded as
 * a / r.l is, unless b is within 2^-45 of 2, which is not usual (after Markstein 1990). */
static __device__ inline double quotient(double a, const struct root *r)
{
  double q = a * r->inverse;
  q = fma(fma(-r->l, q, a), r->inverse, q);
  return fma(fma(-r->l, q, a), r->inverse, q);
}

#endif
