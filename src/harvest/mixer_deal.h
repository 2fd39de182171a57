/* SPDX-License-Identifier: BSD-3-Clause
 * Who computes which tokens and heads of a block: ranks share out its pieces of sequences, then
 * their heads.
 *
 * Floor: harvest. */
#ifndef HARVEST_MIXER_DEAL_H
#define HARVEST_MIXER_DEAL_H

#include "model/capture.h"

/* Tokens of one sequence in a block. */
struct mixer_piece {
  idx sequence;
  gidx first, count; /* of all tokens */
  int ends;          /* it has the sequence's last token */
};

/* A block: up to so many tokens of so many sequences; only the last one may not end. */
struct mixer_block {
  struct mixer_piece *pieces; /* [most_pieces] */
  idx most_pieces, n;
  gidx most_tokens, first, tokens;
  idx sequence; /* the first token of the next block is `token`, of this sequence */
  gidx token;
};
/* The next block; 0: there is none. */
int mixer_block_next(struct mixer_block *b, const struct mixer_source *s);

/* What one call computes: heads of consecutive pieces. */
struct mixer_part {
  idx piece, pieces, head, heads;
};
enum { MIXER_PARTS = 3 };
/* parts[MIXER_PARTS] <- those of a rank; returns how many.  They ascend with rank, piece, head. */
int mixer_deal(const struct mixer_block *b, idx heads, int ranks, int rank,
               struct mixer_part *parts);
/* Tokens of a part. */
gidx mixer_part_tokens(const struct mixer_block *b, const struct mixer_part *p);

#endif
