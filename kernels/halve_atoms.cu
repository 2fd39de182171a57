/* SPDX-License-Identifier: BSD-3-Clause
 * halve_atoms: frames of f32 vectors become short operands; the largest norms are noted.
 *
 * grid    ceil(padded / FILTER_ROW_WARPS) of FILTER_ROW_WARPS warps; a warp a frame */
#include "halve.h"

/* Bits of the next f32 above a norm; infinity for what is no number. */
static __device__ inline unsigned bits_above(double norm)
{
  float f = __double2float_ru(norm);
  return f <= 3.402823466e38f ? __float_as_uint(f) : KEY_INFINITE;
}

/* Raise a number that all frames raise: few of them have to, and all at once would wait in line. */
static __device__ inline void most_raise(unsigned *most, unsigned bits)
{
  if (bits > *(volatile unsigned *)most) atomicMax(most, bits);
}

extern "C" __global__ void __launch_bounds__(FILTER_ROW_WARPS *WARP)
    halve_atoms(const __grid_constant__ struct halve_args a)
{
  long long frame = (long long)blockIdx.x * FILTER_ROW_WARPS + threadIdx.x / WARP;
  if (frame >= a.padded) return;
  int frames_tile = a.items / a.frame, f = (int)(frame % frames_tile);
  long long tile_bytes = (long long)filter_stages(a.p) * a.items * FILTER_ITEM;
  char *tile = a.out + frame / frames_tile * tile_bytes;
  const float *in = a.in + frame * a.turn % a.frames * a.d * a.pitch;
  double sums[3] = {0, 0, 0};
  for (int m = 0; m < a.frame; m++)
    vector_halve(frame < a.frames && m < a.d ? in + (long long)m * a.pitch : 0, a.p,
                 FILTER_ATOM_POWER, tile, a.items, filter_item(a.frame, f, m), sums);
  struct filter_norms n = norms_of(sums);
  if (threadIdx.x % WARP == 0 && a.most && frame < a.frames) {
    most_raise(&a.most->norm, bits_above(n.norm));
    most_raise(&a.most->error, bits_above(n.error));
  }
}
