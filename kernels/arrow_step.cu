/* SPDX-License-Identifier: BSD-3-Clause
 * arrow_step: the steps of the rows of long systems (N.11), after arrow_border.cu.
 *
 * grid    units, each of arrow_step_rows(d, k) rows of a system; the last units first, since the
 *         rows that arrow_sum.cu read last may be in the cache
 * block   ARROW_BLOCK, one thread per row
 * shared  arrow_step_bytes(d, k): the rows, the step of the border
 *
 * -D ARROW_D, ARROW_K
 *
 * If a system was not ok, all its steps are 0.  A row whose step is not finite gets the step 0, and
 * its system is marked not_ok. */
#define ARROW_TEAM ARROW_BLOCK
#include "arrow_row.h"

enum { ROWS = arrow_step_rows(FRAME, BORDER) };

extern "C" __global__ void __launch_bounds__(ARROW_BLOCK)
    arrow_step(const __grid_constant__ struct arrow_args a)
{
  extern __shared__ __align__(16) double shared[];
  struct arrow_unit unit = a.units[gridDim.x - 1 - blockIdx.x];
  struct arrow_atom atom = a.atoms[unit.atom];
  int left = atom.n - unit.first, count = left < ROWS ? left : ROWS, row = threadIdx.x;
  double *border = shared + ROWS * ROW, *out = a.out + atom.out;
  int not_ok = a.found[atom.number].not_ok != 0;
  struct rows rows = {shared, NULL, 5, 0};
  rows_order(&rows, a.in + atom.in, atom.n, unit.first, 0, count, 0);
  async_commit();
  for (int j = row; j < BORDER; j += ARROW_BLOCK) border[j] = out[(long long)atom.n * FRAME + j];
  ASYNC_WAIT(0);
  __syncthreads();
  if (row >= count) return;
  double *own = shared + row * ROW, *factor = own + L_AT,
         *to = out + (long long)(unit.first + row) * FRAME;
  rows_whiten(&own, &factor, NULL, 1, atom.ridge_t);
  if (!not_ok && rows_step(&own, &factor, 1, border, &to)) return;
#pragma unroll
  for (int m = 0; m < FRAME; m++) to[m] = 0;
  a.found[atom.number].not_ok = 1;
}
