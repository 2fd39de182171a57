/* SPDX-License-Identifier: BSD-3-Clause
 * to_f16_atoms: converts frames of f32 vectors to fp16 tiles.  It also finds the largest norm of a
 * frame, and the largest norm of a frame's rounding errors.
 *
 * grid    ceil(padded / SCREEN_ROW_WARPS) blocks of SCREEN_ROW_WARPS warps; one warp per frame
 * shared  none
 *
 * The `padded` frames fill whole tiles.  The launcher zeroes *norms. */
#include "to_f16.h"

/* Bits of the smallest f32 that is at least a norm; infinity for NaN. */
static __device__ inline unsigned bits_above(double norm)
{
  float f = __double2float_ru(norm);
  return f <= 3.402823466e38f ? __float_as_uint(f) : KEY_INFINITE;
}

/* Raise a maximum over all frames.  Few frames raise it; the test saves the others an atomic. */
static __device__ inline void max_raise(unsigned *max, unsigned bits)
{
  if (bits > *(volatile unsigned *)max) atomicMax(max, bits);
}

extern "C" __global__ void __launch_bounds__(SCREEN_ROW_WARPS *WARP)
    to_f16_atoms(const __grid_constant__ struct to_f16_args a)
{
  long long frame = (long long)blockIdx.x * SCREEN_ROW_WARPS + threadIdx.x / WARP;
  if (frame >= a.padded) return;
  int frames_tile = a.items / a.frame, f = (int)(frame % frames_tile);
  long long tile_bytes = (long long)screen_stages(a.p) * a.items * SCREEN_ITEM;
  char *tile = a.out + frame / frames_tile * tile_bytes;
  const float *in = a.in + frame * a.turn % a.frames * a.d * a.pitch;
  double sums[3] = {0, 0, 0};
  for (int m = 0; m < a.frame; m++)
    vector_to_f16(frame < a.frames && m < a.d ? in + (long long)m * a.pitch : 0, a.p,
                  SCREEN_ATOM_POWER, tile, a.items, screen_item(a.frame, f, m), sums, 0);
  struct screen_norms n = norms_of(sums, 0);
  if (threadIdx.x % WARP == 0 && a.norms && frame < a.frames) {
    max_raise(&a.norms->norm, bits_above(n.norm));
    max_raise(&a.norms->error, bits_above(n.error));
  }
}
