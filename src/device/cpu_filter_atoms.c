/* SPDX-License-Identifier: BSD-3-Clause
 * The dictionary as the filter needs it: integers in panels, scales, the largest norm and error. */
#include <math.h>

#include "base/status.h"
#include "device/cpu.h"

int filter_take(struct filter_state *f, struct arena *arena, idx d, idx p, idx atoms_most)
{
  idx columns = f->loops->columns;
  f->quads = (p + columns - 1) / columns * (columns / 4);
  gidx slots = ((gidx)atoms_most + f->loops->lanes - 1) / f->loops->lanes * f->loops->lanes;
  TRY(arena_take(arena, &f->panels, slots * d * f->quads, 4));
  TRY(arena_take(arena, &f->scale, slots, sizeof *f->scale));
  TRY(arena_take(arena, &f->inverse, slots, sizeof *f->inverse));
  return arena_take(arena, &f->frame, slots, sizeof *f->frame);
}

/* One slot's integers, at its lane of its panel. */
static void slot_pack(struct filter_state *f, idx d, idx p, idx slot, const int8_t *q)
{
  idx lanes = f->loops->lanes;
  uint8_t *to = f->panels + (gidx)(slot / lanes) * d * f->quads * lanes * 4 + slot % lanes * 4;
  for (idx m = 0; m < d; m++, q += p)
    for (idx c = 0; c < p; c++)
      to[((gidx)m * f->quads + c / 4) * lanes * 4 + c % 4] = (uint8_t)(q[c] + f->loops->offset);
}

int filter_put(struct cpu_state *s, idx first, idx count, const float *frames)
{
  struct filter_state *f = &s->filter;
  idx d = s->options.d, p = s->options.p;
  struct arena arena = {0};
  int8_t *q;
  int threads = s->options.threads;
  real norm = f->norm_most, error = f->error_most;
  TRY(arena_take(&arena, &q, (gidx)threads * d * p, 1));
#pragma omp parallel for num_threads(threads) reduction(max : norm, error)
  for (int t = 0; t < threads; t++)
    for (idx i = t; i < count; i += threads) {
      const float *frame = frames + (gidx)i * d * p;
      int8_t *own = q + (gidx)t * d * p;
      struct quantized z;
      filter_quantize(frame, d, p, f->loops->levels, own, &z);
      slot_pack(f, d, p, first + i, own);
      f->frame[first + i] = frame;
      f->scale[first + i] = z.scale;
      f->inverse[first + i] = 1 / z.scale;
      real size = isfinite(z.norm) ? z.norm : INFINITY;
      norm = size > norm ? size : norm;
      error = z.error / z.scale > error ? z.error / z.scale : error;
    }
  f->norm_most = norm;
  f->error_most = error * (1 + 0x1p-40); /* of the division */
  arena_free(&arena);
  return OK;
}
