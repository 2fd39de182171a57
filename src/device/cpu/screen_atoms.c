/* SPDX-License-Identifier: BSD-3-Clause
 * The form of the dictionary that the certified filter needs: integers in panels, scales, and the
 * largest norm and error of any frame. */
#include "device/cpu/screen_atoms.h"

#include <math.h>

#include "base/status.h"
#include "device/cpu/cpu.h"

int screen_alloc(struct screen_state *f, struct arena *arena, idx d, idx p, idx max_atoms)
{
  idx columns = f->loops->columns;
  f->quads = (p + columns - 1) / columns * (columns / 4);
  gidx slots = ((gidx)max_atoms + f->loops->lanes - 1) / f->loops->lanes * f->loops->lanes;
  TRY(arena_alloc(arena, &f->panels, slots * d * f->quads, 4));
  TRY(arena_alloc(arena, &f->scale, slots, sizeof *f->scale));
  TRY(arena_alloc(arena, &f->inverse, slots, sizeof *f->inverse));
  return arena_alloc(arena, &f->frame, slots, sizeof *f->frame);
}

/* Write the integers q[d][p] of a slot into its lane of its panel. */
static void slot_pack(struct screen_state *f, idx d, idx p, idx slot, const int8_t *q)
{
  idx lanes = f->loops->lanes;
  uint8_t *to = f->panels + (gidx)(slot / lanes) * d * f->quads * lanes * 4 + slot % lanes * 4;
  for (idx m = 0; m < d; m++, q += p)
    for (idx c = 0; c < p; c++)
      to[((gidx)m * f->quads + c / 4) * lanes * 4 + c % 4] = (uint8_t)(q[c] + f->loops->offset);
}

int screen_put(struct cpu_state *s, idx first, idx count, const float *frames)
{
  struct screen_state *f = &s->screen;
  idx d = s->options.d, p = s->options.p;
  struct arena arena = {0};
  int8_t *q;
  int threads = s->options.threads;
  real norm = f->max_norm, error = f->max_error;
  TRY(arena_alloc(&arena, &q, (gidx)threads * d * p, 1));
#pragma omp parallel for num_threads(threads) reduction(max : norm, error)
  for (int t = 0; t < threads; t++)
    for (idx i = t; i < count; i += threads) {
      const float *frame = frames + (gidx)i * d * p;
      int8_t *own = q + (gidx)t * d * p;
      struct quantized z;
      screen_quantize(frame, d, p, f->loops->levels, own, &z);
      slot_pack(f, d, p, first + i, own);
      f->frame[first + i] = frame;
      f->scale[first + i] = z.scale;
      f->inverse[first + i] = 1 / z.scale;
      real size = isfinite(z.norm) ? z.norm : INFINITY;
      norm = size > norm ? size : norm;
      error = z.error / z.scale > error ? z.error / z.scale : error;
    }
  f->max_norm = norm;
  f->max_error = error * (1 + 0x1p-40); /* covers the rounding of the division */
  arena_free(&arena);
  return OK;
}
