/* SPDX-License-Identifier: BSD-3-Clause
 * Which rank computes which tokens and heads of a block: ranks divide its pieces of sequences, then
 * the heads of a piece.
 *
 * Floor: harvest. */
#ifndef HARVEST_MIXER_DEAL_H
#define HARVEST_MIXER_DEAL_H

#include "model/capture.h"

/* The tokens of one sequence in a block. */
struct mixer_piece {
  idx sequence;
  gidx first, count; /* among all tokens */
  int ends;          /* it has the sequence's last token */
};

/* A block: up to most_tokens tokens of up to most_pieces sequences.  All of them end in it except
 * perhaps the last; the first may have begun in an earlier block. */
struct mixer_block {
  struct mixer_piece *pieces; /* [most_pieces] */
  idx most_pieces, n;
  gidx most_tokens, first, tokens;
  idx sequence; /* the next block begins with `token`, of this sequence */
  gidx token;
};
/* Set the next block; returns 0 if there is none. */
int mixer_block_next(struct mixer_block *b, const struct mixer_source *s);

/* The work of one call: some heads of consecutive pieces. */
struct mixer_part {
  idx piece, pieces, head, heads;
};
enum { MIXER_PARTS = 3 };
/* parts[MIXER_PARTS] <- the parts of a rank; returns how many there are.  The parts of
 * a rank ascend in (piece, head), and come before those of the next rank. */
int mixer_deal(const struct mixer_block *b, idx heads, int ranks, int rank,
               struct mixer_part *parts);
/* Number of tokens of a part. */
gidx mixer_part_tokens(const struct mixer_block *b, const struct mixer_part *p);

#endif
