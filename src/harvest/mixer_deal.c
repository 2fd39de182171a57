/* SPDX-License-Identifier: BSD-3-Clause
 * The weight of a (piece, head) pair is the number of the piece's tokens, plus one for the state.
 * Each rank gets a consecutive run of (piece, head) pairs, as equal in weight as possible. */
#include "harvest/mixer_deal.h"

#include "base/num.h"

int mixer_block_next(struct mixer_block *b, const struct mixer_source *s)
{
  b->n = 0, b->first = b->token, b->tokens = 0;
  while (b->sequence < s->sequences && b->n < b->most_pieces) {
    gidx rest = s->start[b->sequence + 1] - b->token;
    gidx count = imin(rest, b->most_tokens - b->tokens);
    if (rest && !count) break;
    b->pieces[b->n++] = (struct mixer_piece){b->sequence, b->token, count, count == rest};
    b->token += count, b->tokens += count;
    if (count < rest) break;
    b->sequence++;
  }
  return b->n > 0;
}

static gidx weight(const struct mixer_piece *p)
{
  return p->count + 1;
}

/* The first (piece, head) pair that begins at weight `at` or later. */
static gidx item_find(const struct mixer_block *b, idx heads, gidx at)
{
  gidx before = 0;
  for (idx i = 0; i < b->n; i++) {
    gidx own = weight(b->pieces + i);
    if (at <= before + own * heads) return (gidx)i * heads + ceil_div(imax(at - before, 0), own);
    before += own * heads;
  }
  return (gidx)b->n * heads;
}

int mixer_deal(const struct mixer_block *b, idx heads, int ranks, int rank,
               struct mixer_part *parts)
{
  gidx all = 0;
  for (idx i = 0; i < b->n; i++) all += weight(b->pieces + i) * heads;
  gidx first = item_find(b, heads, all * rank / ranks);
  gidx end = item_find(b, heads, all * (rank + 1) / ranks);
  idx piece = (idx)(first / heads), head = (idx)(first % heads);
  idx last = (idx)(end / heads), rest = (idx)(end % heads), n = 0;
  if (first >= end) return 0;
  if (piece == last) {
    parts[n++] = (struct mixer_part){piece, 1, head, rest - head};
    return n;
  }
  if (head) parts[n++] = (struct mixer_part){piece++, 1, head, heads - head};
  if (last > piece) parts[n++] = (struct mixer_part){piece, last - piece, 0, heads};
  if (rest) parts[n++] = (struct mixer_part){last, 1, 0, rest};
  return n;
}

gidx mixer_part_tokens(const struct mixer_block *b, const struct mixer_part *p)
{
  const struct mixer_piece *last = b->pieces + p->piece + p->pieces - 1;
  return last->first + last->count - b->pieces[p->piece].first;
}
