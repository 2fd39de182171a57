/* SPDX-License-Identifier: BSD-3-Clause
 * All rows in the order of (random key, row), a window of keys at a time.
 *
 * Floor: stage.
 *
 * The key of a row is random_bits(seed, STREAM_DRAW, row).  Keys are spread evenly, so the rows
 * with keys below a bound are about as many as wanted: memory is that of a window, whatever the
 * number of rows, and a window costs one pass over row numbers, no reading. */
#ifndef STAGE_DRAW_H
#define STAGE_DRAW_H

#include "base/types.h"
#include "comm/comm.h"

struct drawn_row {
  uint64_t key;
  gidx row;
};

/* Zeroed but for the first three by the caller. */
struct draw {
  gidx n; /* rows */
  uint64_t seed;
  gidx wanted;             /* rows that a window should have, about; >= 1 */
  uint64_t from;           /* first key of the next window */
  int ended;               /* there is no next window */
  struct drawn_row *drawn; /* [count] the window, in order, the same on every rank; owned */
  gidx count;
};

/* Replace the window by the next one; call while ended is 0.  Collective. */
int draw_next(struct draw *d, struct comm *c);
void draw_free(struct draw *d);

#endif
