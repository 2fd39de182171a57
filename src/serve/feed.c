/* SPDX-License-Identifier: BSD-3-Clause
 * The queue has at most FILE_PIECES pieces of one file, in the order of their rows. */
#include "serve/feed.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "encode/lane.h"

int piece_alloc(struct piece *piece, const struct front *f, gidx n)
{
  const struct message_limits *m = &f->limits;
  struct arena *a = &piece->arena;
  gidx entries = n * m->s;
  TRY(arena_alloc(a, &piece->x, n * m->p, sizeof *piece->x));
  TRY(arena_alloc(a, &piece->atoms, entries, sizeof *piece->atoms));
  TRY(arena_alloc(a, &piece->score, entries, sizeof *piece->score));
  TRY(arena_alloc(a, &piece->codes, entries * m->d, sizeof *piece->codes));
  TRY(arena_alloc(a, &piece->quality, n, sizeof *piece->quality));
  lane_pin(f->lane, piece->x, n);
  piece->is_pinned = 1;
  return OK;
}

void piece_free(struct piece *piece, const struct front *f)
{
  if (piece->is_pinned) lane_unpin(f->lane, piece->x);
  arena_free(&piece->arena);
  *piece = (struct piece){0};
}

void feed_put(struct front *f, struct piece *piece)
{
  struct piece **end = &f->pieces;
  pthread_mutex_lock(&f->lock);
  piece->next = NULL;
  piece->done = piece->taken = 0;
  piece->is_back = f->is_closing;
  while (*end) end = &(*end)->next;
  if (!piece->is_back) *end = piece;
  pthread_cond_signal(&f->changed);
  pthread_mutex_unlock(&f->lock);
}

void feed_wait(struct front *f, struct piece *piece)
{
  pthread_mutex_lock(&f->lock);
  while (!piece->is_back) pthread_cond_wait(&f->returned, &f->lock);
  pthread_mutex_unlock(&f->lock);
}

int feed_is_closing(struct front *f)
{
  pthread_mutex_lock(&f->lock);
  int is_closing = f->is_closing;
  pthread_mutex_unlock(&f->lock);
  return is_closing;
}

gidx feed_rows(const struct front *f, int is_closing)
{
  gidx n = 0;
  const struct piece *first = f->pieces;
  if (is_closing && first)
    return imin(ceil_div(first->taken, ROW_BLOCK) * ROW_BLOCK, first->n) - first->taken;
  for (const struct piece *p = first; p; p = p->next) n += p->n - p->taken;
  return n;
}

void feed_return(struct front *f, int is_closing, int is_late)
{
  struct piece *p;
  while ((p = f->pieces)) {
    int is_whole = p->done == p->n || (is_closing && p->done % ROW_BLOCK == 0);
    if (p->taken > p->done || (!is_whole && !is_late)) break; /* some rows have no codes yet */
    if (!is_whole) p->done -= p->done % ROW_BLOCK;
    f->pieces = p->next;
    p->is_back = 1;
  }
  pthread_cond_broadcast(&f->returned);
}

void piece_fill(struct piece *p, const struct message_limits *m, const struct support_block *b,
                const struct row_quality *quality, gidx at, gidx first, gidx n)
{
  gidx from = at * m->s, to = first * m->s;
  size_t entries = (size_t)n * (size_t)m->s;
  memcpy(p->atoms + to, b->atoms + from, entries * sizeof *p->atoms);
  memcpy(p->score + to, b->score + from, entries * sizeof *p->score);
  memcpy(p->codes + to * m->d, b->codes + from * m->d, entries * (size_t)m->d * sizeof *p->codes);
  memcpy(p->quality + first, quality + at, (size_t)n * sizeof *quality);
}
