/* SPDX-License-Identifier: BSD-3-Clause
 * All rows in the order of (random key, row), window by window.  A window is an interval of keys.
 *
 * Floor: seed.
 *
 * The key of a row is random_bits(seed, STREAM_DRAW, row).  Keys are spread evenly, so a window of
 * keys can be chosen that has about the wanted number of rows.  Only one window is in memory,
 * whatever the number of rows.  A window costs one pass over the row numbers, without reading
 * rows. */
#ifndef SEED_DRAW_H
#define SEED_DRAW_H

#include "base/types.h"
#include "comm/comm.h"

struct drawn_row {
  uint64_t key;
  gidx row;
};

/* The caller sets n, seed and wanted, and zeroes the rest. */
struct draw {
  gidx n; /* rows */
  uint64_t seed;
  gidx wanted;             /* wanted rows per window; >= 1 */
  uint64_t from;           /* first key of the next window */
  int ended;               /* there is no further window */
  struct drawn_row *drawn; /* [count] the window, sorted, the same on every rank; owned */
  gidx count;
};

/* Replace the window by the next one; call this while ended is 0.  Collective. */
int draw_next(struct draw *d, struct comm *c);
void draw_free(struct draw *d);

#endif
