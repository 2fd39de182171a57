/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: eigenvalues and eigenvectors of symmetric matrices are right up to rounding, even if
 * eigenvalues are equal.  They have the same bits on any number of threads.
 * RUN: np=1 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "model/eigen.h"
#include "tap.h"

/* The largest |A v - lambda v| and |V V' - I|, divided by n and by the larger of 1 and the largest
 * entry. */
#define TOLERANCE 4e-15

static void matrix_fill(int kind, idx n, real *a)
{
  for (idx i = 0; i < n; i++)
    for (idx c = 0; c <= i; c++) {
      real x = random_normal(1, 2, (uint64_t)i * 1000 + (uint64_t)c);
      if (kind == 1) x = i == c ? 1 + i % 3 : 0;           /* diagonal, with equal values */
      if (kind == 2) x = 1;                                /* rank 1 */
      if (kind == 3) x = i - c <= 1 ? i == c ? 2 : -1 : 0; /* tridiagonal */
      if (kind == 4) x = 0;
      if (kind == 5) x *= exp2(-0.5 * (i + c)); /* graded */
      a[i * n + c] = a[c * n + i] = x;
    }
}

static real worst(idx n, const real *a, const real *value, const real *vector)
{
  real most = 0;
  for (idx k = 0; k < n; k++) {
    const real *v = vector + k * n;
    for (idx i = 0; i < n; i++) {
      real sum = -value[k] * v[i], inner = i == k ? -1 : 0;
      for (idx c = 0; c < n; c++) sum += a[i * n + c] * v[c];
      for (idx c = 0; c < n; c++) inner += vector[i * n + c] * v[c];
      most = fmax(most, fmax(fabs(sum), fabs(inner)));
    }
  }
  return most;
}

int main(void)
{
  static const idx sizes[] = {1, 2, 3, 7, 40, 131, 530};
  enum { KINDS = 6, MOST = 530 };
  size_t bytes = sizeof(real) * MOST * MOST;
  real *a = malloc(bytes), *used = malloc(bytes), *vector = malloc(bytes), *again = malloc(bytes);
  real *work = malloc(bytes + 3 * MOST * sizeof(real)), value[MOST], other[MOST];
  for (int kind = 0; kind < KINDS; kind++) {
    real most = 0, size = 0;
    int same = 1;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      idx n = sizes[s];
      if (n > 200 && kind % 5) continue; /* only these sizes use threads; two kinds are enough */
      matrix_fill(kind, n, a);
      for (idx i = 0; i < n * n; i++) size = fmax(size, fabs(a[i]));
      memcpy(used, a, (size_t)(n * n) * sizeof *a);
      same = same && eigen_symmetric(n, used, value, vector, work, 1) == 0;
      most = fmax(most, worst(n, a, value, vector) / n);
      memcpy(used, a, (size_t)(n * n) * sizeof *a);
      same = same && eigen_symmetric(n, used, other, again, work, 3) == 0;
      same = same && !memcmp(value, other, (size_t)n * sizeof *value) &&
             !memcmp(vector, again, (size_t)(n * n) * sizeof *vector);
    }
    ok(same, "kind %d: the same bits on three threads", kind);
    ok(most <= TOLERANCE * fmax(size, 1), "kind %d: the largest residual is %.2g of a size", kind,
       most);
  }
  for (idx n = 0; n < 4; n++) a[n] = n == 1 || n == 2 ? NAN : 1;
  ok(eigen_symmetric(2, a, value, vector, work, 1) != 0, "a matrix with a NaN is refused");
  free(a), free(used), free(vector), free(again), free(work);
  return done_testing();
}
