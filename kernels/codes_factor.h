/* SPDX-License-Identifier: BSD-3-Clause
 * Cholesky factor, rank test, substitutions (N.5): a lane has one row of a panel of 32.
 *
 * Columns come in groups; the chain of an entry runs along its row, so that the chains of 32 rows
 * by a group run at once. */
#ifndef CODES_FACTOR_H
#define CODES_FACTOR_H

#include "codes_row.h"

/* Part of its squared norm that a kept vector's pivot exceeds: DROP_TOLERANCE of model/codes.h. */
#define DROP_TOLERANCE 0x1p-30

enum { GROUP = 8 };

/* Work on a panel: the rank test, or the factor with rho on the diagonal of what was kept. */
struct factoring {
  double *panels, *panel; /* all, and the one in work */
  int chunk, test, solve; /* solve: y too */
  double rho;
};

/* The next columns, at most GROUP: entries of the lane's row, and where their own rows stand. */
struct group {
  int first, width, fresh; /* columns from `fresh` on have new rows of this panel */
  int mine;                /* the lane's row is new and not before the first column's */
  const double *rows;      /* rows of the columns: column k at rows + k CODES_HEIGHT */
  double entry[GROUP], norm;
};

static __device__ inline struct group group_begin(const struct codes_row *r,
                                                  const struct factoring *f, int first)
{
  struct group g = {first, r->count - first < GROUP ? r->count - first : GROUP, GROUP};
  int v = f->chunk * WARP + (int)threadIdx.x;
  if (first / WARP == f->chunk) g.fresh = r->old > first ? r->old - first : 0;
  g.mine = v >= r->old && v < r->count && v >= first;
  g.rows = f->panels + codes_panel_start(first / WARP) + first % WARP;
#pragma unroll
  for (int u = 0; u < GROUP; u++) {
    int there = g.mine && u < g.width && v >= first + u;
    g.entry[u] = there ? f->panel[(first + u) * CODES_HEIGHT + threadIdx.x] : 0;
    if (v == first + u) g.norm = g.entry[u];
    if (v == first + u) g.entry[u] += f->rho;
  }
  return g;
}

/* One term of the chains of the group. */
static __device__ inline void group_term(struct group *g, const double *own, int k)
{
  double l = -own[k * CODES_HEIGHT];
#pragma unroll
  for (int u = 0; u < GROUP; u++)
    if (u < g->width) g->entry[u] = fma(l, g->rows[k * CODES_HEIGHT + u], g->entry[u]);
}

/* Chains over the kept columns before the group; a loop without tests keeps loads in flight. */
static __device__ inline void group_reduce(const struct codes_row *r, const struct factoring *f,
                                           struct group *g)
{
  if (!g->mine) return;
  const double *own = f->panel + threadIdx.x;
#pragma unroll 1
  for (int first = 0; first < g->first; first += WARP) {
    unsigned kept = r->kept[first / WARP];
    int end = g->first < first + WARP ? g->first : first + WARP;
    if (__popc(kept << (first + WARP - end)) == end - first && g->width == GROUP) {
#pragma unroll 4
      for (int k = first; k < end; k++) group_term(g, own, k);
    } else {
#pragma unroll 1
      for (int k = first; k < end; k++)
        if (kept >> k % WARP & 1) group_term(g, own, k);
    }
  }
}

/* Is column u of the group kept?  Known before, or by its pivot, which lane `at` has. */
static __device__ inline int column_keep(const struct codes_row *r, const struct factoring *f,
                                         const struct group *g, int u, double pivot)
{
  int v = g->first + u, at = v % WARP;
  if (!f->test || u < g->fresh) return is_kept(r, v);
  int keep = __shfl_sync(FULL_WARP, pivot > DROP_TOLERANCE * g->norm, at);
  if (threadIdx.x == 0) r->kept[v / WARP] |= (unsigned)keep << at;
  return keep;
}

/* Entry v of y, and the lane's right side b after it; l is the lane's entry of column v. */
static __device__ inline void column_solve(const struct factoring *f, int v, int fresh,
                                           double pivot, double l, double *b)
{
  double *y = f->panels + codes_panel_start(v / WARP) + v * CODES_HEIGHT + WARP;
  double solved = __shfl_sync(FULL_WARP, *b, v % WARP) / pivot;
  if (!fresh) solved = *y;
  if (fresh && threadIdx.x == 0) *y = solved;
  *b = fma(-l, solved, *b);
}

/* Column u is done: divide, store, and take it off the group's later columns. */
static __device__ inline void column_finish(const struct codes_row *r, const struct factoring *f,
                                            struct group *g, int u, double *b)
{
  int lane = threadIdx.x, v = g->first + u, at = v % WARP, own = f->chunk * WARP + lane;
  int keep = column_keep(r, f, g, u, g->entry[u]), there = g->mine && own >= v;
  double pivot = __shfl_sync(FULL_WARP, g->entry[u], at), l = 0;
  double *entry = f->panel + v * CODES_HEIGHT + lane;
  if (keep) pivot = u < g->fresh ? g->rows[v * CODES_HEIGHT + u] : sqrt(pivot);
  if (keep && there) l = own == v ? pivot : g->entry[u] / pivot;
  if (there) *entry = l;
  if (!keep) {
    if (f->solve && u >= g->fresh && lane == 0) f->panel[v * CODES_HEIGHT + WARP] = 0;
    return;
  }
  if (f->solve) column_solve(f, v, u >= g->fresh, pivot, own > v ? l : 0, b);
#pragma unroll
  for (int w = u + 1; w < GROUP; w++) {
    if (w >= g->width) continue;
    double other = __shfl_sync(FULL_WARP, l, (g->first + w) % WARP);
    if (w < g->fresh) other = g->rows[v * CODES_HEIGHT + w];
    g->entry[w] = fma(-l, other, g->entry[w]);
  }
}

static __device__ inline void panel_factor(const struct codes_row *r, struct factoring f)
{
  int v = f.chunk * WARP + (int)threadIdx.x, end = f.chunk * WARP + WARP;
  f.panel = f.panels + codes_panel_start(f.chunk);
  double b = 0;
  if (f.solve && v >= r->old && v < r->count) b = f.panel[v * CODES_HEIGHT + WARP];
  __syncwarp();
#pragma unroll 1
  for (int first = 0; first < end && first < r->count; first += GROUP) {
    struct group g = group_begin(r, &f, first);
    group_reduce(r, &f, &g);
#pragma unroll
    for (int u = 0; u < GROUP; u++)
      if (u < g.width) column_finish(r, &f, &g, u, &b);
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

/* acc <- chain over the kept vectors of a later chunk, descending; v is the lane's own. */
static __device__ inline double chunk_subtract(const struct codes_row *r, int later, int v,
                                               double acc)
{
  const double *column = r->factor + codes_panel_start(later) + v * CODES_HEIGHT;
  int left = r->count - later * WARP, end = left < WARP ? left : WARP;
  unsigned kept = r->kept[later];
#pragma unroll 8
  for (int k = end - 1; k >= 0; k--) {
    double next = fma(-column[k], r->codes[later * WARP + k], acc);
    acc = kept >> k & 1 ? next : acc;
  }
  return acc;
}

/* Codes of a chunk: chains in descending order, those of later chunks first. */
static __device__ inline void chunk_back(const struct codes_row *r, int chunk)
{
  int lane = threadIdx.x, v = chunk * WARP + lane, left = r->count - chunk * WARP;
  const double *panel = r->factor + codes_panel_start(chunk);
  double acc = lane < left ? panel[v * CODES_HEIGHT + WARP] : 0, code = 0;
  for (int later = (r->count - 1) / WARP; later > chunk; later--)
    acc = chunk_subtract(r, later, v, acc);
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
