/* SPDX-License-Identifier: BSD-3-Clause
 * All rows in the order of (random key, row), one window of keys at a time.
 *
 * Floor: seed.
 *
 * The key of a row is random_bits(seed, STREAM_DRAW, row).  Keys are spread evenly, so a range of
 * keys can be chosen that about as many rows have as are wanted.  Memory is that of a window,
 * whatever the number of rows, and a window costs one pass over row numbers but no reading. */
#ifndef SEED_DRAW_H
#define SEED_DRAW_H

#include "base/types.h"
#include "comm/comm.h"

struct drawn_row {
  uint64_t key;
  gidx row;
};

/* The caller fills the first three and zeroes the rest. */
struct draw {
  gidx n; /* rows */
  uint64_t seed;
  gidx wanted;             /* rows that a window should have, about; >= 1 */
  uint64_t from;           /* first key of the next window */
  int ended;               /* there is no further window */
  struct drawn_row *drawn; /* [count] the window, in order, the same on every rank; owned */
  gidx count;
};

/* Replace the window by the next one; call while ended is 0.  Collective. */
int draw_next(struct draw *d, struct comm *c);
void draw_free(struct draw *d);

#endif
