/* SPDX-License-Identifier: BSD-3-Clause
 * Square roots and quotients with the bits of sqrt() and of a division, but without branches, so
 * that several can be computed at the same time.  They are valid for usual numbers only; for
 * others the caller uses the plain operations. */
#ifndef ROOT_H
#define ROOT_H

#include "root_estimate.h"

#define LARGEST 1.7976931348623157e308

/* A number is usual if its magnitude is in [2^-400, 2^400).  Then no intermediate result here
 * overflows or underflows. */
static __device__ inline int is_usual(double x)
{
#if __CUDA_ARCH__ >= 900
  unsigned twice = 2 * (unsigned)__double2hiint(x); /* drops the sign */
  return twice - ((1023u - 400) << 21) < (800u << 21);
#else /* this form needs fewer registers */
  unsigned size = (unsigned)__double2hiint(x) & 0x7fffffffu;
  return size - ((1023u - 400) << 20) < (800u << 20);
#endif
}

/* Is the sign bit of x clear? */
static __device__ inline int is_above(double x)
{
  return __double2hiint(x) >= 0;
}

/* A test of several numbers at once.  A number is usual if its rank is below a bound, so the
 * largest rank decides for all numbers.  All members begin as 0. */
struct ranks {
  unsigned number, pivot, root;
};
static __device__ inline void ranks_number(struct ranks *r, double x)
{
  unsigned rank = 2 * (unsigned)__double2hiint(x) - ((1023u - 400) << 21); /* drops the sign */
  r->number = rank > r->number ? rank : r->number;
}
/* Add a pivot and its root l.  The pivot must be usual and positive.  The significand of the root
 * must not be nearly 2. */
static __device__ inline void ranks_root(struct ranks *r, double pivot, double l)
{
  unsigned rank = (unsigned)__double2hiint(pivot) - ((1023u - 400) << 20);
  unsigned significand = (unsigned)__double2hiint(l) << 12;
  r->pivot = rank > r->pivot ? rank : r->pivot;
  r->root = significand > r->root ? significand : r->root;
}
static __device__ inline int ranks_usual(const struct ranks *r)
{
  return (r->number < (800u << 21)) & (r->pivot < (800u << 20)) & (r->root < (0xfffffu << 12));
}

/* A number to divide by, and its inverse. */
struct divisor {
  double l, inverse;
};

/* The operations of the compiler's division that depend only on the divisor, which must be
 * usual. */
static __device__ inline struct divisor divisor_of(double l)
{
  struct divisor d = {l, inverse_estimate(l)};
  double e = fma(d.inverse, -l, 1.0);
  d.inverse = fma(d.inverse, fma(e, e, e), d.inverse);
  d.inverse = fma(d.inverse, fma(d.inverse, -l, 1.0), d.inverse);
  return d;
}

/* a / d.l, where a is usual: the other operations of the compiler's division. */
static __device__ inline double quotient(double a, const struct divisor *d)
{
  double q = a * d->inverse;
  return fma(d->inverse, fma(q, -d->l, a), q);
}

/* The root l, and two approximations of its inverse.  `about` has an error of about one unit in the
 * last place (ulp).  The error of `inverse` is at most half a ulp plus 2^-100 of the inverse. */
struct root {
  double l, about, inverse;
  int is_usual; /* 1: the numbers are valid, and root_quotient() may be used */
};

/* The operations of the compiler's sqrt(), whose estimate of 1 / sqrt(x) also gives the inverse.  y
 * is root_estimate() of x, or of a number with the same upper half. */
static __device__ inline struct root root_from(double x, double y)
{
  struct root r;
  double e = fma(x, -(y * y), 1.0);
  r.about = fma(fma(e, 0.375, 0.5), y * e, y);
  double g = x * r.about;
  double half = __hiloint2double(__double2hiint(r.about) - 0x100000, __double2loint(r.about));
  r.l = fma(fma(g, -g, x), half, g);
  r.inverse = fma(fma(-r.l, r.about, 1.0), r.about, r.about);
  r.is_usual = is_usual(x) & ((__double2hiint(r.l) & 0xfffff) != 0xfffff);
  return r;
}
static __device__ inline struct root root_of(double x)
{
  return root_from(x, root_estimate(x));
}

/* a / r.l for usual a and r.  It takes less time than a division by the root.  The error of the
 * first quotient is a few ulp.  That of the second is at most half a ulp plus 2^-48 ulp, so its
 * remainder is exact.  Adding remainder times inverse misses a / r.l by less than b 2^-55 ulp,
 * where b in [1, 2) is the significand of r.l.  No quotient is closer than 2^-53 / b to the
 * midpoint of two numbers.  So the result is rounded as a / r.l is, if b is not within 2^-45 of 2.
 * root_from() marks a root with a larger b as not usual (after Markstein 1990). */
static __device__ inline double root_quotient(double a, const struct root *r)
{
  double q = a * r->about;
  q = fma(fma(-r->l, q, a), r->about, q);
  return fma(fma(-r->l, q, a), r->inverse, q);
}

#endif
