/* SPDX-License-Identifier: BSD-3-Clause
 * A warp converts a vector, scaled by a power of two, to fp16, and computes the norm of the
 * rounding errors. */
#ifndef TO_F16_H
#define TO_F16_H

#include "screen_bound.h"
#include "screen_types.h"
#include "warp.h"

enum { PIECE = 8 }; /* columns that a lane does at a time: 16 bytes of fp16 */

/* Columns c .. c + 7 of v, with zeros from p on. */
static __device__ inline void piece_read(const float *v, int c, int p, float x[PIECE])
{
  if (c + PIECE <= p && (unsigned long long)(v + c) % 16 == 0) {
    *(float4 *)x = *(const float4 *)(v + c);
    *(float4 *)(x + 4) = *(const float4 *)(v + c + 4);
    return;
  }
#pragma unroll
  for (int i = 0; i < PIECE; i++) x[i] = c + i < p ? v[c + i] : 0;
}

static __device__ inline unsigned short half_of(float x)
{
  unsigned short h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}

static __device__ inline float float_of(unsigned short h)
{
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
}

static __device__ inline double warp_sum(double x)
{
#pragma unroll
  for (int step = WARP / 2; step; step /= 2) x += __shfl_xor_sync(FULL_WARP, x, step);
  return x;
}

/* out <- columns c .. c + 7 of v 2^power, rounded to fp16.  Numbers beyond the range of fp16 become
 * +-65504; the error includes this.  Adds |v|^2, |v~|^2 and |v - v~|^2 of these columns to sums,
 * where v~ is the rounded vector divided by 2^power.  If v is null, out becomes zeros. */
static __device__ inline void piece_to_f16(const float *v, int c, int p, int power, char *out,
                                           double sums[3])
{
  const float max = 65504;
  double unit = ldexp(1.0, -power);
  float x[PIECE] = {0};
  unsigned short q[PIECE];
  if (v) piece_read(v, c, p, x);
#pragma unroll
  for (int i = 0; i < PIECE; i++) {
    q[i] = half_of(fmaxf(-max, fminf(max, ldexpf(x[i], power))));
    double back = (double)float_of(q[i]) * unit, lost = x[i] - back;
    sums[0] += (double)x[i] * x[i];
    sums[1] += back * back;
    sums[2] += lost * lost;
  }
  *(uint4 *)out = *(const uint4 *)q;
}

/* Convert a whole vector by piece_to_f16(); sums must be zeros.  If is_mean, returns an upper bound
 * of the mean of norm(1), norm(2), ..  norm(columns), where norm(c) is the norm of the first c
 * columns.  It is a bound because all columns that the warp does in one step count with the norm
 * after that step.  Otherwise returns 0. */
static __device__ inline double vector_to_f16(const float *v, int p, int power, char *out,
                                              int items, int item, double sums[3],
                                              const int is_mean)
{
  const int columns = screen_stages(p) * SCREEN_DEPTH;
  double norms = 0;
  for (int first = 0; first < columns; first += WARP * PIECE) {
    int c = first + threadIdx.x % WARP * PIECE;
    if (c < columns) piece_to_f16(v, c, p, power, out + screen_byte(items, item, c), sums);
    if (is_mean) norms += min(columns - first, WARP * PIECE) * sqrt(warp_sum(sums[0]));
  }
  return norms / columns;
}

/* The factor `up` covers all roundings in these sums and their roots. */
static __device__ inline struct screen_norms norms_of(const double sums[3], double mean)
{
  const double up = 1 + 0x1p-30;
  struct screen_norms n = {up * sqrt(warp_sum(sums[0])), up * sqrt(warp_sum(sums[1])),
                           up * sqrt(warp_sum(sums[2])), up * mean};
  return n;
}

#endif
