/* SPDX-License-Identifier: BSD-3-Clause
 * normal_energies: continues the sums of squares of residuals (N.3r) of rows.
 *
 * grid    ceil(n / ENERGY_ROWS): some rows
 * block   ENERGY_COLUMNS, one column each; then the first ENERGY_ROWS threads have one row each
 * shared  static: the rows' residuals in these columns
 * sums    an entry of a residual is a chain of fma along the support; an energy is a chain over
 *         columns, ascending
 *
 * Reading s atoms for each row from the second-level cache takes most of the time. */
#include "types.h"

enum { AHEAD = 8 };

/* Column begin + `column` of the residual of a row. */
static __device__ double residual_entry(const struct normal_energies_args &a, int row, int column)
{
  const int *slots = a.slots + (long long)row * a.s;
  const float *codes = a.codes + (long long)row * a.s;
  double r = a.x[(long long)row * a.p + a.begin + column];
  int j = 0;
#pragma unroll 1
  for (; j + AHEAD <= a.s; j += AHEAD) {
    double d[AHEAD];
#pragma unroll
    for (int u = 0; u < AHEAD; u++) d[u] = a.atoms[(long long)slots[j + u] * a.columns + column];
#pragma unroll
    for (int u = 0; u < AHEAD; u++) r = fma(-d[u], (double)codes[j + u], r);
  }
#pragma unroll 1
  for (; j < a.s; j++)
    r = fma(-a.atoms[(long long)slots[j] * a.columns + column], (double)codes[j], r);
  return r;
}

extern "C" __global__ void __launch_bounds__(ENERGY_COLUMNS)
    normal_energies(const __grid_constant__ struct normal_energies_args a)
{
  __shared__ double residual[ENERGY_ROWS][ENERGY_COLUMNS + 1];
  int first = blockIdx.x * ENERGY_ROWS, own = threadIdx.x;
  int rows = a.n - first < ENERGY_ROWS ? a.n - first : ENERGY_ROWS;
  double energy = own < rows ? a.energy[first + own] : 0;
  for (int at = 0; at < a.columns; at += ENERGY_COLUMNS) {
    int columns = a.columns - at < ENERGY_COLUMNS ? a.columns - at : ENERGY_COLUMNS;
    for (int i = 0; i < rows && own < columns; i++)
      residual[i][own] = residual_entry(a, first + i, at + own);
    __syncthreads();
    for (int c = 0; c < columns && own < rows; c++)
      energy = fma(residual[own][c], residual[own][c], energy);
    __syncthreads();
  }
  if (own < rows) a.energy[first + own] = energy;
}
