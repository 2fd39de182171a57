/* SPDX-License-Identifier: BSD-3-Clause
 * Attention and its attribution on a GPU that cannot hold a whole capture.  Pieces of keys and
 * values are copied to it, of many sequences at a time; sums continue from piece to piece (N.27),
 * and so do lists of contributions (N.28).
 *
 * Floor: harvest.
 *
 * Keys and values are float32 on the GPU, whatever they are in the capture: widening is exact. */
#ifndef HARVEST_PIECES_H
#define HARVEST_PIECES_H

#include "device/device.h"
#include "model/capture.h"
#include "model/top.h"

struct resident_capture_atoms;

/* Queries of a sequence, with some of its positions. */
struct piece {
  gidx sequence;
  gidx first; /* first position of the piece, where a shard begins */
  idx count;  /* number of positions */
  gidx query; /* number of the first query, among all */
  idx n;
  const gidx *from, *end; /* [n] what each query sees of the sequence */
  const float *q;         /* [n][heads][d] */
  float *m, *l, *acc;     /* [n] sums (device/attention.h); no acc with attribution */
  int goes_on; /* 1: queries that also see positions in front of the piece continue the sums in m,
                * l and acc; 0: all sums start here */
};

/* Rows and their atoms, in row order. */
struct piece_pairs {
  gidx count;
  gidx first;         /* number of the first row, among all */
  const gidx *start;  /* [rows + 1] */
  const idx *atom_of; /* [count] */
  struct top_rows *top;
  real *part; /* [count][heads] the sum so far, over positions in ascending order */
};

struct pieces;

/* Can the device hold pieces, besides the work for `queries` queries and `beside` more bytes?
 * ERR_MEMORY with the numbers; ERR_DEVICE for heads that it does not take. */
int pieces_check(const struct capture_source *capture, struct device *device, idx queries,
                 gidx beside);
/* Open for pieces of at most `queries` queries, and for attribution of these atoms, if there are
 * any; all arguments are borrowed.  Fails like pieces_check().  Call pieces_close() also then; it
 * is safe on NULL.  Not collective. */
int pieces_open(struct pieces **p, const struct capture_source *capture, struct device *device,
                idx queries, const struct resident_capture_atoms *atoms);
void pieces_close(struct pieces *p);
/* *positions <- the number of positions that the next piece may have, a multiple of
 * ATTENTION_SHARD.  Waiting pieces are run first if there is no room. */
int pieces_room(struct pieces *p, idx *positions);
/* Add a piece: after pieces_flush() its m, l and acc are as device_attention() computes them.  The
 * arrays of a piece must stay until then.  Pieces wait until there is no room for another one, or
 * until pieces_flush() runs them; only one piece of each query may wait. */
int pieces_add(struct pieces *p, const struct piece *piece);
int pieces_flush(struct pieces *p);
/* From here to pieces_pairs_end() pieces are for attribution, and the pieces of a sequence come in
 * ascending order.  They read the m and l that the pass without attribution has computed; top and
 * part, which are borrowed, are continued. */
int pieces_pairs_begin(struct pieces *p, const struct piece_pairs *pairs);
int pieces_pairs_end(struct pieces *p);

#endif
