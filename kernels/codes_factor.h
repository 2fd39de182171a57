/* SPDX-License-Identifier: BSD-3-Clause
 * Cholesky factor, rank test, substitutions (N.5): a lane has one row of a panel of 32.
 *
 * Columns come one after another; the chain of an entry runs along its row, so 32 run at once. */
#ifndef CODES_FACTOR_H
#define CODES_FACTOR_H

#include "codes_row.h"

/* Part of its squared norm that a kept vector's pivot exceeds: DROP_TOLERANCE of model/codes.h. */
#define DROP_TOLERANCE 0x1p-30

/* Work on a panel: the rank test, or the factor with rho on the diagonal of what was kept. */
struct factoring {
  double *panels, *panel; /* all, and the one in work */
  int chunk, test, solve; /* solve: y too */
  double rho;
};

/* acc <- chain over the kept columns before j of the lane's row and row j. */
static __device__ inline double row_reduce(const struct codes_row *r, const double *own,
                                           const double *other, int j, double acc)
{
  for (int first = 0; first < j; first += WARP) {
    unsigned kept = r->kept[first / WARP];
    int end = j - first < WARP ? j - first : WARP;
    const double *a = own + first * CODES_HEIGHT, *b = other + first * CODES_HEIGHT;
#pragma unroll 8
    for (int k = 0; k < end; k++)
      if (kept >> k & 1) acc = fma(-a[k * CODES_HEIGHT], b[k * CODES_HEIGHT], acc);
  }
  return acc;
}

/* Is vector j kept?  Known before, or by its pivot, which lane j % WARP has. */
static __device__ inline int column_keep(const struct codes_row *r, const struct factoring *f,
                                         int j, double pivot, double norm)
{
  if (!f->test || j < r->old || j / WARP != f->chunk) return is_kept(r, j);
  int keep = __shfl_sync(FULL_WARP, pivot > DROP_TOLERANCE * norm, j % WARP);
  if (threadIdx.x == 0) r->kept[j / WARP] |= (unsigned)keep << j % WARP;
  __syncwarp();
  return keep;
}

/* Column j of the new rows of a panel; b is the lane's right side, updated. */
static __device__ inline void column_factor(const struct codes_row *r, const struct factoring *f,
                                            int j, double *b)
{
  int lane = threadIdx.x, v = f->chunk * WARP + lane, at = j % WARP;
  int fresh = j >= r->old && j / WARP == f->chunk;
  int mine = v >= r->old && v < r->count && v >= j;
  double *entry = f->panel + j * CODES_HEIGHT + lane, acc = 0, norm = 0;
  const double *other = (fresh ? f->panel : f->panels + codes_panel_start(j / WARP)) + at;
  if (mine && (f->test || is_kept(r, j))) {
    norm = *entry;
    acc = row_reduce(r, f->panel + lane, other, j, v == j ? norm + f->rho : norm);
  }
  int keep = column_keep(r, f, j, acc, norm);
  double pivot = 1, y = 0;
  if (keep) pivot = fresh ? sqrt(__shfl_sync(FULL_WARP, acc, at)) : other[j * CODES_HEIGHT];
  if (mine) *entry = !keep ? 0 : v == j ? pivot : acc / pivot;
  if (!f->solve) return;
  double *own = f->panel + j * CODES_HEIGHT + WARP;
  if (keep)
    y = fresh ? __shfl_sync(FULL_WARP, *b, at) / pivot : other[j * CODES_HEIGHT + WARP - at];
  if (fresh && lane == 0) *own = y;
  if (keep && mine && v > j) *b = fma(-*entry, y, *b);
}

static __device__ inline void panel_factor(const struct codes_row *r, struct factoring f)
{
  int v = f.chunk * WARP + (int)threadIdx.x, end = f.chunk * WARP + WARP;
  f.panel = f.panels + codes_panel_start(f.chunk);
  double b = 0;
  if (f.solve && v >= r->old && v < r->count) b = f.panel[v * CODES_HEIGHT + WARP];
#pragma unroll 1
  for (int j = 0; j < end && j < r->count; j++) {
    column_factor(r, &f, j, &b);
    __syncwarp();
  }
}

/* Factor the new rows of a chunk. */
static __device__ inline void chunk_factor(const struct codes_row *r, int chunk, double rho)
{
  struct factoring f = {r->rank, 0, chunk, 1, !(rho > 0), 0};
  if (threadIdx.x == 0 && chunk * WARP >= r->old) r->kept[chunk] = 0;
  __syncwarp();
  panel_factor(r, f);
  if (!(rho > 0)) return;
  struct factoring g = {r->factor, 0, chunk, 0, 1, rho};
  panel_factor(r, g);
}

/* Codes of a chunk: chains in descending order, those of later chunks first. */
static __device__ inline void chunk_back(const struct codes_row *r, int chunk)
{
  int lane = threadIdx.x, v = chunk * WARP + lane, left = r->count - chunk * WARP;
  const double *panel = r->factor + codes_panel_start(chunk);
  double acc = lane < left ? panel[v * CODES_HEIGHT + WARP] : 0, code = 0;
  for (int k = r->count - 1; k >= (chunk + 1) * WARP; k--) {
    const double *row = r->factor + codes_panel_start(k / WARP) + k % WARP;
    if (is_kept(r, k)) acc = fma(-row[v * CODES_HEIGHT], r->codes[k], acc);
  }
  for (int k = left < WARP ? left - 1 : WARP - 1; k >= 0; k--) {
    if (!is_kept(r, chunk * WARP + k)) continue;
    double l = lane <= k ? panel[v * CODES_HEIGHT + k] : 1;
    double c = __shfl_sync(FULL_WARP, acc / l, k);
    if (lane == k) code = c;
    if (lane < k) acc = fma(-l, c, acc);
  }
  if (lane < left) r->codes[v] = code;
  __syncwarp();
}

#endif
