/* SPDX-License-Identifier: BSD-3-Clause
 * The dictionary in the form that the certified filter needs.  route_loops.h defines slots.
 *
 * Floor: device. */
#ifndef DEVICE_CPU_SCREEN_ATOMS_H
#define DEVICE_CPU_SCREEN_ATOMS_H

#include "base/memory.h"
#include "device/cpu/screen_loops.h"

struct cpu_state;

/* The device's part of the dictionary, in the arena of cpu_state. */
struct screen_state {
  const struct screen_loops *loops; /* NULL: none for this processor */
  int is_on, is_automatic;          /* automatic: turned off when it does not pay */
  idx quads;                        /* p / 4, rounded up to whole `columns` of the loops */
  uint8_t *panels;                  /* [ceil(max_atoms / lanes)][d][quads][lanes][4] */
  float *scale, *inverse;           /* [..][lanes] of each slot; inverse: about 1 / scale */
  const float **frame;              /* [max_atoms] borrowed f32 frames */
  real max_norm;                    /* the largest norm of a frame */
  real max_error;                   /* the largest error of a frame divided by its scale */
};

/* Space for max_atoms frames[d][p]. */
int screen_alloc(struct screen_state *f, struct arena *arena, idx d, idx p, idx max_atoms);

/* Slots first .. first + count - 1 <- frames[count][d][p], which must not move. */
int screen_put(struct cpu_state *s, idx first, idx count, const float *frames);

#endif
