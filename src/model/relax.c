/* SPDX-License-Identifier: BSD-3-Clause
 * At the end of a sweep, frames are moved further along their step, and rounded to f32. */
#include "model/relax.h"

#include <math.h>

#include "model/dictionary.h"

void frame_relax(real *frame, const float *table, idx d, idx p, real further)
{
  gidx values = (gidx)d * p;
  if (further == 0) return;
  for (gidx i = 0; i < values; i++) frame[i] = fma(further, frame[i] - table[i], frame[i]);
  if (frame_orthonormalize(frame, d, p) == d) return;
  for (gidx i = 0; i < values; i++) frame[i] = table[i];
}

real frame_round(real *frame, float *table, idx d, idx p)
{
  gidx values = (gidx)d * p;
  real move = 0;
  for (gidx i = 0; i < values; i++) {
    real step = frame[i] - table[i];
    move = fma(step, step, move);
    table[i] = (float)frame[i];
    frame[i] = table[i];
  }
  return move;
}
