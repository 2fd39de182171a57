/* SPDX-License-Identifier: BSD-3-Clause
 * Sums on a GPU that does not hold a capture: pieces of keys and values go there, many sequences'
 * at a time, and sums go on from piece to piece (N.27), or lists of what made them (N.28).
 *
 * Floor: harvest.
 *
 * Keys and values are float32 there, whatever they are in the capture: widening is exact. */
#ifndef HARVEST_PIECES_H
#define HARVEST_PIECES_H

#include "device/device.h"
#include "model/capture.h"
#include "model/top.h"

struct resident_capture_atoms;

/* Queries of a sequence over some of its positions. */
struct piece {
  gidx sequence;
  gidx first; /* position where it begins, as a shard does */
  idx count;  /* positions */
  gidx query; /* the first query, of all */
  idx n;
  const gidx *from, *end; /* [n] what each sees of the sequence */
  const float *q;         /* [n][heads][d] */
  float *m, *l, *acc;     /* [n] sums (device/attention.h); of attribution no acc */
  int goes_on;            /* else the sums begin here, whatever is seen before */
};

/* Rows and their atoms, in the order of rows. */
struct piece_pairs {
  gidx count;
  gidx first;         /* the first row, of all */
  const gidx *start;  /* [rows + 1] */
  const idx *atom_of; /* [count] */
  struct top_rows *top;
  real *part; /* [count][heads] the chains over positions */
};

struct pieces;

/* Can the device have pieces, beside the work for so many queries and so many bytes?  ERR_MEMORY
 * with the numbers; ERR_DEVICE for heads beyond what it takes. */
int pieces_check(const struct capture_source *capture, struct device *device, idx queries,
                 gidx beside);
/* For pieces of at most so many queries, and attribution of these atoms, if there are some; all of
 * these are borrowed.  Fails as pieces_check() does.  pieces_close() follows also then; it is safe
 * on NULL.  Not collective. */
int pieces_open(struct pieces **p, const struct capture_source *capture, struct device *device,
                idx queries, const struct resident_capture_atoms *atoms);
void pieces_close(struct pieces *p);
/* Positions that a piece may have now, a multiple of ATTENTION_SHARD. */
int pieces_room(struct pieces *p, idx *positions);
/* m, l, acc <- with a piece, after pieces_flush(), as device_attention() makes them.  What a piece
 * points to stays until then.  A query has one piece between two calls of pieces_room() that ran
 * others to make room. */
int pieces_add(struct pieces *p, const struct piece *piece);
int pieces_flush(struct pieces *p);
/* From here to pieces_pairs_end() pieces are of attribution, those of a sequence in ascending
 * order: they take m and l as the walk left them, and top and part, which are borrowed, go on from
 * what they are. */
int pieces_pairs_begin(struct pieces *p, const struct piece_pairs *pairs);
int pieces_pairs_end(struct pieces *p);

#endif
