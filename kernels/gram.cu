/* SPDX-License-Identifier: BSD-3-Clause
 * gram: for each row, the new entries of the Gram matrix (N.4) of its vectors, and the products of
 * the new vectors with the row.
 *
 * grid    any number of blocks; block b has rows b, b + blocks and so on
 * block   (WARP, codes_warps()): one warp per chunk of 32 vectors, up to CODES_WARPS
 * shared  gram_shared_bytes(): slices of vectors, indices of vectors
 * sums    chains of fma in f64 over ascending columns
 *
 * -D MMA (tensor.h), ONE=0
 * It runs before codes or nonnegative if rows may have more than one chunk of vectors (max_m d >
 * WARP), unless m_old = m_new. */
/* 0 is right for both kinds of codes: a state of nonnegative codes begins with the arrays that a
 * state of other codes has if rho is 0. */
#define NONNEGATIVE 0
#include "codes_gram.h"

/* Warps that fit on a multiprocessor; without MMA they need more registers. */
enum { RESIDENT_WARPS = MMA ? 16 : 8 };

extern "C" __global__ void __launch_bounds__(CODES_WARPS *WARP, RESIDENT_WARPS / CODES_WARPS)
    gram(const __grid_constant__ struct codes_args a)
{
  extern __shared__ __align__(16) char shared[];
  int *place = (int *)(shared + codes_slices_bytes(codes_warps(a.max_m * a.d)));
  for (long long row = blockIdx.x; row < a.n; row += gridDim.x) {
    struct codes_state s = state_of(&a, row);
    struct codes_row r = row_of(&a, row, &s, place);
    slots_find(&r, a.slot + row * a.max_m, a.d);
    gram_make(&r, (float *)shared, a.rho);
  }
}
