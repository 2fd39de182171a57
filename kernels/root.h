/* SPDX-License-Identifier: BSD-3-Clause
 * Roots and quotients with the bits of sqrt() and of a division, without branches, so that several
 * are under way at a time.  The caller takes the plain ones where numbers are not usual. */
#ifndef ROOT_H
#define ROOT_H

#include "root_estimate.h"

#define LARGEST 1.7976931348623157e308

/* Is the size of x in [2^-400, 2^400)?  Then nothing here leaves the range. */
static __device__ inline int is_usual(double x)
{
#if __CUDA_ARCH__ >= 900
  unsigned twice = 2 * (unsigned)__double2hiint(x); /* the sign leaves */
  return twice - ((1023u - 400) << 21) < (800u << 21);
#else /* fewer registers where they do not suffice */
  unsigned size = (unsigned)__double2hiint(x) & 0x7fffffffu;
  return size - ((1023u - 400) << 20) < (800u << 20);
#endif
}

/* Is the sign of x that of numbers above zero? */
static __device__ inline int is_above(double x)
{
  return __double2hiint(x) >= 0;
}

/* Several such questions at once.  A number is usual where its rank is below a bound, so that the
 * largest rank answers for all; begin with zeros. */
struct ranks {
  unsigned number, pivot, root;
};
static __device__ inline void ranks_number(struct ranks *r, double x)
{
  unsigned rank = 2 * (unsigned)__double2hiint(x) - ((1023u - 400) << 21); /* the sign leaves */
  r->number = rank > r->number ? rank : r->number;
}
/* Of a pivot, which is to be above zero, too, and its root, whose significand is not nearly 2. */
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

/* The operations of the compiler's division that depend on the divisor alone, which is usual. */
static __device__ inline struct divisor divisor_of(double l)
{
  struct divisor d = {l, inverse_estimate(l)};
  double e = fma(d.inverse, -l, 1.0);
  d.inverse = fma(d.inverse, fma(e, e, e), d.inverse);
  d.inverse = fma(d.inverse, fma(d.inverse, -l, 1.0), d.inverse);
  return d;
}

/* The rest of them: a / d.l, where a is usual. */
static __device__ inline double quotient(double a, const struct divisor *d)
{
  double q = a * d->inverse;
  return fma(d->inverse, fma(q, -d->l, a), q);
}

/* A root, and its inverse, to about a unit of the last place and to half a one and 2^-100 of it. */
struct root {
  double l, about, inverse;
  int is_usual; /* these are right, and root_quotient() may be used */
};

/* The operations of the compiler's sqrt(), whose estimate of 1 / sqrt(x) gives the inverse too; y
 * is root_estimate() of x, or of what has its upper half. */
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

/* a / r.l, where a and r are usual, sooner after the root than by a division.  The first quotient
 * is within a few units of the last place, the second within half a one and 2^-48 of it, so that
 * its remainder is exact.  Adding remainder times inverse misses a / r.l by less than b 2^-55
 * units, where b in [1, 2) is the significand of r.l.  No quotient is nearer than 2^-53 / b to the
 * middle of two numbers, so this one is rounded as a / r.l is, unless b is within 2^-45 of 2, which
 * is not usual (after Markstein 1990). */
static __device__ inline double root_quotient(double a, const struct root *r)
{
  double q = a * r->about;
  q = fma(fma(-r->l, q, a), r->about, q);
  return fma(fma(-r->l, q, a), r->inverse, q);
}

#endif
