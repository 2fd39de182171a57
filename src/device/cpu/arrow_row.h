/* SPDX-License-Identifier: BSD-3-Clause
 * Arithmetic of one arrow system: a row (N.7, N.8, N.11), and the amount that a failed attempt adds
 * to a ridge (N.14).
 *
 * Floor: device.
 *
 * The including file first defines
 *   val            the type of a row's number: double, or a vector of doubles, one row per lane,
 *   VAL_FMA(a, b, c), VAL_SQRT(a)   each rounded once, lane by lane.
 *
 * The factor L (d x d) of a row is packed by columns: L_ij is at ARROW_AT(d, i, j), i >= j.  When d
 * is a constant, all loops below unroll, and L and x stay in registers. */
#ifndef DEVICE_CPU_ARROW_ROW_H
#define DEVICE_CPU_ARROW_ROW_H

#define BODY static inline __attribute__((always_inline))
#define BODY_UNROLL _Pragma("GCC unroll 8")

#define ARROW_AT(d, i, j) ((j) * (2 * (d) - (j)-1) / 2 + (i))

/* a, the lower triangle of H_i + ridge_t I <- L (N.7); pivot[d] <- the pivots before their square
 * roots.  After a pivot that is not positive and finite, the rest is meaningless. */
BODY void arrow_row_factor(int d, val *a, val *pivot)
{
  BODY_UNROLL
  for (int j = 0; j < d; j++) {
    BODY_UNROLL
    for (int p = 0; p < j; p++) {
      val factor = -a[ARROW_AT(d, j, p)];
      BODY_UNROLL
      for (int i = j; i < d; i++)
        a[ARROW_AT(d, i, j)] = VAL_FMA(a[ARROW_AT(d, i, p)], factor, a[ARROW_AT(d, i, j)]);
    }
    pivot[j] = a[ARROW_AT(d, j, j)];
    a[ARROW_AT(d, j, j)] = VAL_SQRT(pivot[j]);
    BODY_UNROLL
    for (int i = j + 1; i < d; i++)
      a[ARROW_AT(d, i, j)] = a[ARROW_AT(d, i, j)] / a[ARROW_AT(d, j, j)];
  }
}

/* x[d] <- L^-1 x (N.8). */
BODY void arrow_row_forward(int d, const val *l, val *x)
{
  BODY_UNROLL
  for (int i = 0; i < d; i++) {
    BODY_UNROLL
    for (int p = 0; p < i; p++) x[i] = VAL_FMA(-l[ARROW_AT(d, i, p)], x[p], x[i]);
    x[i] = x[i] / l[ARROW_AT(d, i, i)];
  }
}

/* x[d] <- L^-T x, chains in descending order (N.11). */
BODY void arrow_row_back(int d, const val *l, val *x)
{
  BODY_UNROLL
  for (int i = d - 1; i >= 0; i--) {
    BODY_UNROLL
    for (int p = d - 1; p > i; p--) x[i] = VAL_FMA(-l[ARROW_AT(d, p, i)], x[p], x[i]);
    x[i] = x[i] / l[ARROW_AT(d, i, i)];
  }
}

BODY double arrow_size(double x)
{
  return x < 0 ? -x : x;
}

/* In a row of a symmetric matrix, subtract the diagonal entry from the sum of the absolute values
 * of all other entries.  Returns the largest such difference, or 0 if none is positive.  Unless
 * max_sum is NULL, *max_sum is raised to the largest sum of absolute values in a row.  Only the
 * lower triangle of a[n][n] is read; its columns are `stride` apart. */
BODY double arrow_deficit(const double *a, int n, int stride, double *max_sum)
{
  double worst = 0;
  for (int i = 0; i < n; i++) {
    double others = 0, all = 0;
    for (int j = 0; j < n; j++) {
      double size = arrow_size(i > j ? a[(long long)j * stride + i] : a[(long long)i * stride + j]);
      if (j != i) others += size;
      all += size;
    }
    double lacks = others - a[(long long)i * stride + i];
    if (lacks > worst) worst = lacks;
    if (max_sum && all > *max_sum) *max_sum = all;
  }
  return worst;
}

/* The addition of (N.14) to the ridge of the rows, for a bad diagonal block a (d x d, column-major,
 * ridge included).  unit: u_t. */
BODY double arrow_bump_row(const double *a, int d, double unit)
{
  double largest = unit;
  double lacks = arrow_deficit(a, d, d, &largest);
  return lacks + 0x1p-16 * largest;
}

/* The addition to the ridge of the border, from its Schur complement; unit: u_b. */
BODY double arrow_bump_border(const double *schur, int stride, int k, double unit)
{
  return arrow_deficit(schur, k, stride, (double *)0) + 1e-3 * unit;
}

#endif
