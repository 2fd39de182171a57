/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of training for any vector width.
 *
 * Floor: device.  A unit (isa.h) includes this after vectors.h. */
#include <math.h>

#include "device/cpu/triad_loops.h"

/* A tile of the output takes TRIAD_ROWS * TRIAD_VECTORS registers.  Enough are left for the
 * TRIAD_VECTORS vectors of the panel. */
enum {
  TRIAD_ROWS = F32_LANES == 16 ? 6 : 4,
  TRIAD_VECTORS = F32_LANES == 16 ? 4 : 3,
  TRIAD_WIDTH = TRIAD_VECTORS * F32_LANES,
  TRIAD_SUMS = 4, /* vectors of an output row that a sparse sum keeps in registers */
  TRIAD_DOTS = 8  /* chains that run side by side */
};

ALWAYS_INLINE void triad_tile_rows(const float *x, gidx row, gidx depth_stride, const int rows,
                                   const float *panel, idx depth, const float *start, float *y,
                                   gidx stride)
{
  f32v acc[TRIAD_ROWS][TRIAD_VECTORS];
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < TRIAD_VECTORS; v++) acc[r][v] = f32_load(start + v * F32_LANES);
  for (idx i = 0; i < depth; i++, x += depth_stride, panel += TRIAD_WIDTH) {
    f32v w[TRIAD_VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < TRIAD_VECTORS; v++) w[v] = f32_load(panel + v * F32_LANES);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      f32v t = f32_splat(x[r * row]);
#pragma GCC unroll 4
      for (int v = 0; v < TRIAD_VECTORS; v++) acc[r][v] = f32_fma(t, w[v], acc[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < TRIAD_VECTORS; v++) f32_store(y + r * stride + v * F32_LANES, acc[r][v]);
}

static void triad_tile(const float *x, gidx row, gidx depth_stride, idx rows, const float *panel,
                       idx depth, const float *start, float *y, gidx stride)
{
  if (rows == TRIAD_ROWS)
    triad_tile_rows(x, row, depth_stride, TRIAD_ROWS, panel, depth, start, y, stride);
  else
    triad_tile_rows(x, row, depth_stride, 1, panel, depth, start, y, stride);
}

ALWAYS_INLINE void triad_sum_part(const idx *index, const float *value, gidx n, const float *matrix,
                                  idx width, const int vectors, float *out)
{
  f32v acc[TRIAD_SUMS];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) acc[v] = (f32v){0};
  for (gidx e = 0; e < n; e++) {
    const float *from = matrix + (gidx)index[e] * width;
    f32v t = f32_splat(value[e]);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) acc[v] = f32_fma(t, f32_load(from + v * F32_LANES), acc[v]);
  }
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) f32_store(out + v * F32_LANES, acc[v]);
}

static void triad_sum(const idx *index, const float *value, gidx n, const float *matrix, idx width,
                      float *out)
{
  enum { WIDE = TRIAD_SUMS * F32_LANES };
  idx c = 0;
  for (; c + WIDE <= width; c += WIDE)
    triad_sum_part(index, value, n, matrix + c, width, TRIAD_SUMS, out + c);
  for (; c + F32_LANES <= width; c += F32_LANES)
    triad_sum_part(index, value, n, matrix + c, width, 1, out + c);
  for (; c < width; c++) {
    float acc = 0;
    for (gidx e = 0; e < n; e++) acc = fmaf(value[e], matrix[(gidx)index[e] * width + c], acc);
    out[c] = acc;
  }
}

ALWAYS_INLINE void triad_dots_few(const float *row, const idx *index, const int n,
                                  const float *matrix, idx width, float *out)
{
  const float *with[TRIAD_DOTS];
  float acc[TRIAD_DOTS];
#pragma GCC unroll 8
  for (int e = 0; e < n; e++) {
    with[e] = matrix + (gidx)index[e] * width;
    acc[e] = 0;
  }
  for (idx c = 0; c < width; c++)
#pragma GCC unroll 8
    for (int e = 0; e < n; e++) acc[e] = fmaf(row[c], with[e][c], acc[e]);
#pragma GCC unroll 8
  for (int e = 0; e < n; e++) out[e] = acc[e];
}

static void triad_dots_row(const float *row, const idx *index, gidx n, const float *matrix,
                           idx width, float *out)
{
  gidx e = 0;
  for (; e + TRIAD_DOTS <= n; e += TRIAD_DOTS)
    triad_dots_few(row, index + e, TRIAD_DOTS, matrix, width, out + e);
  for (; e < n; e++) triad_dots_few(row, index + e, 1, matrix, width, out + e);
}

/* Several rows are summed side by side, since each addition of a chain waits for the one before. */
ALWAYS_INLINE void triad_squares_few(const float *rows, gidx stride, const int n, idx width,
                                     real *out, idx step)
{
  real acc[TRIAD_DOTS];
#pragma GCC unroll 8
  for (int i = 0; i < n; i++) acc[i] = 0;
  for (idx c = 0; c < width; c++)
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) acc[i] = fma(rows[i * stride + c], rows[i * stride + c], acc[i]);
#pragma GCC unroll 8
  for (int i = 0; i < n; i++) out[i * step] = acc[i];
}

static void triad_squares(const float *rows, gidx stride, idx n, idx width, real *out, idx step)
{
  idx i = 0;
  for (; i + TRIAD_DOTS <= n; i += TRIAD_DOTS)
    triad_squares_few(rows + i * stride, stride, TRIAD_DOTS, width, out + i * step, step);
  for (; i < n; i++) triad_squares_few(rows + i * stride, stride, 1, width, out + i * step, step);
}

static void triad_adam(const struct adam_state *s, const struct adam_rates *rates)
{
  gidx i = 0;
  for (; i + F32_LANES <= s->count; i += F32_LANES) {
    f32v g = f32_load(s->g + i);
    f32v m = 0.9f * f32_load(s->m + i) + 0.1f * g;
    f32v v = 0.999f * f32_load(s->v + i) + 0.001f * g * g;
    f32v size = f32_sqrt(v * rates->correction) + 1e-8f;
    f32_store(s->m + i, m);
    f32_store(s->v + i, v);
    f32_store(s->w + i, f32_load(s->w + i) - rates->rate * m / size);
  }
  for (; i < s->count; i++) {
    float g = s->g[i], size;
    s->m[i] = 0.9f * s->m[i] + 0.1f * g;
    s->v[i] = 0.999f * s->v[i] + 0.001f * g * g;
    size = sqrtf(s->v[i] * rates->correction) + 1e-8f;
    s->w[i] -= rates->rate * s->m[i] / size;
  }
}

static const struct triad_loops triad_table = {.rows = TRIAD_ROWS,
                                               .width = TRIAD_WIDTH,
                                               .tile = triad_tile,
                                               .sum = triad_sum,
                                               .dots = triad_dots_row,
                                               .squares = triad_squares,
                                               .adam = triad_adam};
