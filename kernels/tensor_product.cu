/* SPDX-License-Identifier: BSD-3-Clause
 * tensor_product: products, forward and backward, by the matrix unit (N.45).
 *
 * grid    blocks, at most one per multiprocessor; cluster c of them has groups of tiles c, c +
 *         clusters, ..
 * block   tensor_threads(WGMMA)
 * shared  dynamic, tensor_shared_bytes(): struct shared, aligned to 1024 bytes
 * sums    from start, depths ascending, 16 or 8 at a time as the matrix unit adds them */
#define IS_GRADIENT 0
#include "tensor_tile.h"

static __device__ inline void sums_start(const struct triad_args *t, struct place at,
                                         float z[EIGHTS][4])
{
#pragma unroll
  for (int j = 0; j < EIGHTS; j++)
#pragma unroll
    for (int v = 0; v < 2; v++) {
      int c = at.column + 8 * j + v;
      z[j][v] = z[j][2 + v] = t->start && c < t->columns ? t->start[c] : 0;
    }
}

/* Store the largest sum of each group of columns of a row, or 0 if none is positive. */
static __device__ inline void maxima_store(const struct triad_args *t, struct place at, int i,
                                           const float z[EIGHTS][4])
{
  enum { EACH = TENSOR_GROUP / 8 };
  int row = at.row + 8 * i;
#pragma unroll
  for (int g = 0; g < EIGHTS / EACH; g++) {
    float most = 0;
#pragma unroll
    for (int j = g * EACH; j < (g + 1) * EACH; j++)
#pragma unroll
      for (int v = 0; v < 2; v++) {
        float sum = z[j][2 * i + v];
        most = at.column + 8 * j + v < t->columns && sum > most ? sum : most;
      }
    most = fmaxf(most, __shfl_xor_sync(FULL_WARP, most, 1));
    most = fmaxf(most, __shfl_xor_sync(FULL_WARP, most, 2));
    int group = at.column / TENSOR_GROUP + g;
    if (threadIdx.x % 4 == 0 && row < t->rows && group < t->groups)
      t->maxima[(long long)row * t->groups + group] = most;
  }
}

static __device__ inline float value_of(const struct triad_args *t, float sum)
{
  return !t->maxima ? settled(sum) : sum > 0 ? sum : 0;
}

static __device__ inline void row_store(const struct tensor_args *a, struct place at, int i,
                                        const float z[EIGHTS][4])
{
  const struct triad_args *t = &a->t;
  int row = at.row + 8 * i;
  if (row >= t->rows) return;
  float *to = t->c + row * t->c_row;
#pragma unroll
  for (int j = 0; j < EIGHTS; j++) {
    int c = at.column + 8 * j;
    float2 two = {value_of(t, z[j][2 * i]), value_of(t, z[j][2 * i + 1])};
    if (a->is_aligned && c + 2 <= t->columns) {
      *(float2 *)(to + c) = two;
      continue;
    }
    if (c < t->columns) to[c] = two.x;
    if (c + 1 < t->columns) to[c + 1] = two.y;
  }
}

/* Four lanes exchange words of two columns.  Lane l has word l of each of four groups of eight
 * columns.  It gets all four words of group l. */
static __device__ inline uint4 words_exchange(const unsigned word[4])
{
  int lane = threadIdx.x % 4, odd = lane & 1, high = lane & 2;
  unsigned keep[2], send[2], got[2], all[4];
#pragma unroll
  for (int h = 0; h < 2; h++) { /* groups 2 h, 2 h + 1: keep the one with the parity of this lane */
    keep[h] = odd ? word[2 * h + 1] : word[2 * h];
    send[h] = odd ? word[2 * h] : word[2 * h + 1];
    got[h] = __shfl_xor_sync(FULL_WARP, send[h], 1);
  }
  /* of group 2 h + odd: the words of a pair of lanes, the even lane's first */
  unsigned pair[2][2] = {{odd ? got[0] : keep[0], odd ? keep[0] : got[0]},
                         {odd ? got[1] : keep[1], odd ? keep[1] : got[1]}};
#pragma unroll
  for (int i = 0; i < 2; i++) {
    unsigned own = high ? pair[1][i] : pair[0][i], other = high ? pair[0][i] : pair[1][i];
    other = __shfl_xor_sync(FULL_WARP, other, 2);
    all[i] = high ? other : own;
    all[2 + i] = high ? own : other;
  }
  uint4 four = {all[0], all[1], all[2], all[3]};
  return four;
}

/* Store eight columns of a row, some of which may be outside of the matrix. */
static __device__ inline void eighth_store(const struct tensor_args *a, int row, int column,
                                           uint4 four)
{
  const struct triad_args *t = &a->t;
  unsigned word[4] = {four.x, four.y, four.z, four.w};
  if (row >= t->rows || column >= t->columns) return;
  unsigned short *to = (unsigned short *)t->c + row * t->c_row + column;
  if (a->is_aligned && column + 8 <= t->columns) {
    *(uint4 *)to = four;
    return;
  }
#pragma unroll
  for (int v = 0; v < 8; v++)
    if (column + v < t->columns) to[v] = (unsigned short)(word[v / 2] >> v % 2 * 16);
}

/* row_store() with 16 bits per number.  Lanes exchange words, so that each writes 16 bytes. */
static __device__ inline void row_store_narrow(const struct tensor_args *a, struct place at, int i,
                                               const float z[EIGHTS][4])
{
  int lane = threadIdx.x % 4, column = at.column - 2 * lane + 8 * lane;
#pragma unroll
  for (int j = 0; j < EIGHTS; j += 4) {
    unsigned word[4];
#pragma unroll
    for (int v = 0; v < 4; v++)
      word[v] = two_stored(value_of(&a->t, z[j + v][2 * i]), value_of(&a->t, z[j + v][2 * i + 1]));
    eighth_store(a, at.row + 8 * i, column + 8 * j, words_exchange(word));
  }
}

extern "C" __global__ void __launch_bounds__(tensor_threads(WGMMA), 1)
    tensor_product(const __grid_constant__ struct tensor_args a)
{
  extern __shared__ char memory[];
  struct shared *s = shared_own(memory);
  if (!stages_enter(&a, s)) return;
  int serial = 0;
  for (int number = group_first(); number < groups_of(&a); number += group_hop()) {
    struct tile tile = tile_of(&a, number);
    struct place at = position_of(tile);
    float z[EIGHTS][4];
    sums_start(&a.t, at, z);
    chain_add(&a, s, z, tile, 0, a.stages, &serial);
#pragma unroll
    for (int i = 0; i < 2; i++) {
      if (a.t.maxima) maxima_store(&a.t, at, i, z);
      if (a.is_stored)
        row_store_narrow(&a, at, i, z);
      else
        row_store(&a, at, i, z);
    }
  }
  stages_leave();
}
