/* SPDX-License-Identifier: BSD-3-Clause
 * These are plain loops that follow the formulas. */
#include "model/triad.h"

#include <math.h>
#include <string.h>

float triad_nan(void)
{
  const uint32_t bits = 0x7fc00000u;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Give every NaN the same bits.  Processors differ in the operand whose NaN bits they keep. */
static float settled(float x)
{
  return isnan(x) ? triad_nan() : x;
}

void triad_product(const struct triad_product *p)
{
  for (idx r = 0; r < p->m; r++)
    for (idx j = 0; j < p->n; j++) {
      float acc = p->bias ? p->bias[j] : 0;
      for (idx i = 0; i < p->k; i++)
        acc = fmaf(p->x[r * p->x_stride + i], p->w.at[i * p->w.in + j * p->w.out], acc);
      p->y[r * p->y_stride + j] = settled(acc);
    }
}

void triad_gradient(const struct triad_gradient *g)
{
  for (idx i = 0; i < g->k; i++)
    for (idx j = 0; j < g->n; j++) {
      real sum = 0;
      for (idx first = 0; first < g->m; first += TRIAD_CHUNK) {
        float acc = 0;
        for (idx r = first; r < g->m && r - first < TRIAD_CHUNK; r++)
          acc = fmaf(g->x[r * g->x_stride + i], g->dy[r * g->dy_stride + j], acc);
        sum += acc;
      }
      float *dw = &g->dw[i * g->dw_stride + j];
      *dw = settled(*dw + (float)sum);
    }
}

void triad_sparse(const struct triad_lists *l, float *out)
{
  for (gidx i = 0; i < l->count; i++)
    for (idx c = 0; c < l->width; c++) {
      float acc = 0;
      for (gidx e = l->start[i]; e < l->start[i + 1]; e++)
        acc = fmaf(l->value[e], l->matrix[(gidx)l->index[e] * l->width + c], acc);
      out[i * l->width + c] = acc;
    }
}

void triad_sparse_gradient(const struct triad_lists *l, float *out)
{
  for (gidx i = 0; i < l->count; i++)
    for (idx c = 0; c < l->width; c++) {
      real sum = 0;
      for (gidx e = l->start[i]; e < l->start[i + 1];) {
        idx chunk = l->index[e] / TRIAD_CHUNK;
        float acc = 0;
        for (; e < l->start[i + 1] && l->index[e] / TRIAD_CHUNK == chunk; e++)
          acc = fmaf(l->value[e], l->matrix[(gidx)l->index[e] * l->width + c], acc);
        sum += acc;
      }
      out[i * l->width + c] += (float)sum;
    }
}

void triad_dots(const struct triad_lists *l, const float *rows, float *out)
{
  for (gidx i = 0; i < l->count; i++)
    for (gidx e = l->start[i]; e < l->start[i + 1]; e++) {
      const float *row = rows + i * l->width, *with = l->matrix + (gidx)l->index[e] * l->width;
      float acc = 0;
      for (idx c = 0; c < l->width; c++) acc = fmaf(row[c], with[c], acc);
      out[e] = acc;
    }
}
