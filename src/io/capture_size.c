/* SPDX-License-Identifier: BSD-3-Clause
 * The norms of queries and keys need not be reproducible to the bit.  So they are summed in eight
 * accumulators, which makes summing faster than reading. */
#include "io/capture_size.h"

#include <math.h>

#include "base/half.h"
#include "base/num.h"

enum { ACCUMULATORS = 8, PIECE = 256 };

/* in f64, because the square of a float may exceed the range of f32 */
static real square_sum(const float *x, idx d)
{
  real sum[ACCUMULATORS] = {0}, total = 0;
  idx c = 0;
  for (; c + ACCUMULATORS <= d; c += ACCUMULATORS)
    for (idx i = 0; i < ACCUMULATORS; i++) sum[i] += (real)x[c + i] * (real)x[c + i];
  for (; c < d; c++) total += (real)x[c] * (real)x[c];
  for (idx i = 0; i < ACCUMULATORS; i++) total += sum[i];
  return total;
}

/* The squared norm of d values of any type, from index `at` on. */
static real vector_square(const void *values, enum capture_type type, gidx at, idx d)
{
  float wide[PIECE];
  real total = 0;
  if (type == CAPTURE_F32) return square_sum((const float *)values + at, d);
  for (idx c = 0; c < d; c += PIECE) {
    const uint16_t *from = (const uint16_t *)values + at + c;
    idx n = (idx)imin(PIECE, d - c);
    if (type == CAPTURE_F16)
      f16_to_f32(from, n, wide);
    else
      bf16_to_f32(from, n, wide);
    total += square_sum(wide, n);
  }
  return total;
}

void capture_size_note(const void *values, enum capture_type type, gidx count, idx heads, idx d,
                       real *square)
{
  for (gidx i = 0; i < count; i++)
    for (idx h = 0; h < heads; h++) {
      real size = vector_square(values, type, (i * heads + h) * d, d);
      if (isfinite(size) && size > square[h]) square[h] = size;
    }
}
