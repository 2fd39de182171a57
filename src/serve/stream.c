/* SPDX-License-Identifier: BSD-3-Clause
 * A hash table finds the stream of a request.  A ring orders the slots by the time of their last
 * request, to find a free or silent one.  Both are fast even with 65,536 streams. */
#include "serve/stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"

/* ns: if no slot is free, a stream that is silent for longer loses its slot to a new stream */
static const uint64_t silence = 60000000000u;

gidx streams_bytes(idx count)
{
  return (count + 1) * (gidx)sizeof(struct stream) + count * (gidx)sizeof(idx);
}

int streams_init(struct streams *streams, idx count)
{
  size_t n = (size_t)count;
  streams->all = memory_zeroed((n + 1) * sizeof *streams->all);
  streams->chains = memory_zeroed(n * sizeof *streams->chains);
  CHECK(streams->all && streams->chains, ERR_MEMORY, "cannot allocate %d streams", count);
  streams->count = count;
  for (idx i = 0; i <= count; i++) {
    streams->all[i].older = i ? i - 1 : count;
    streams->all[i].newer = i < count ? i + 1 : 0;
  }
  for (idx i = 0; i < count; i++) streams->chains[i] = -1;
  return OK;
}

void streams_free(struct streams *streams)
{
  free(streams->all);
  free(streams->chains);
  *streams = (struct streams){0};
}

/* The head of the hash chain of a stream. */
static idx *chain_of(const struct streams *streams, const struct net_peer *peer, uint64_t number)
{
  uint64_t hash = hash64(peer->name, peer->bytes) + mix64(number);
  return &streams->chains[hash % (uint64_t)streams->count];
}

static struct stream *stream_find(struct streams *streams, const struct net_peer *peer,
                                  uint64_t number)
{
  for (idx i = *chain_of(streams, peer, number); i >= 0; i = streams->all[i].chained) {
    struct stream *s = &streams->all[i];
    if (s->number == number && s->peer.bytes == peer->bytes &&
        !memcmp(s->peer.name, peer->name, peer->bytes))
      return s;
  }
  return NULL;
}

/* Move a slot to the newest end of the ring, or to the oldest. */
static void ring_move(struct streams *streams, const struct stream *which, int is_newest)
{
  idx slot = (idx)(which - streams->all), head = streams->count;
  struct stream *all = streams->all, *s = &all[slot];
  all[s->older].newer = s->newer;
  all[s->newer].older = s->older;
  s->older = is_newest ? all[head].older : head;
  s->newer = all[s->older].newer;
  all[s->older].newer = all[s->newer].older = slot;
}

/* End a stream that is in the table.  Its slot becomes the first to be used again. */
static void stream_drop(struct streams *streams, struct stream *s)
{
  idx slot = (idx)(s - streams->all), *at = chain_of(streams, &s->peer, s->number);
  while (*at != slot) at = &streams->all[*at].chained;
  *at = s->chained;
  s->is_used = 0;
  ring_move(streams, s, 0);
}

/* Returns a free slot.  If there is none, a stream is ended, and its slot is returned.  It is the
 * stream that has been silent longest, of those without a waiting request that were silent for
 * longer than `silence`.  NULL: there is no such stream. */
static struct stream *stream_room(struct streams *streams, uint64_t now)
{
  struct stream *all = streams->all;
  for (idx i = all[streams->count].newer; i < streams->count; i = all[i].newer) {
    struct stream *s = &all[i];
    if (s->is_used && now - s->heard <= silence) return NULL;
    if (s->is_used && s->waiting) continue;
    if (s->is_used) stream_drop(streams, s);
    return s;
  }
  return NULL;
}

/* Begin a stream in slot s.  If the slot is in use, the same stream begins again. */
static void stream_begin(struct streams *streams, struct stream *s, const struct request *r)
{
  idx *chain = chain_of(streams, &r->peer, r->header.step), slot = (idx)(s - streams->all);
  idx chained = s->is_used ? s->chained : *chain;
  if (!s->is_used) *chain = slot;
  *s = (struct stream){.peer = r->peer,
                       .number = r->header.step,
                       .is_used = 1,
                       .older = s->older,
                       .newer = s->newer,
                       .chained = chained};
}

/* The reason why stream s cannot take a request at `position`; NULL: it can. */
static const char *refusal(const struct stream *s, uint64_t position)
{
  if (!s || s->is_ended) return "there is no such stream: send it from token 0 on";
  if (s->is_broken) return "a request of the stream was given up: send it from token 0 on";
  if (position != (uint64_t)s->next)
    return "tokens are missing before these, or came already: send the stream from token 0 on";
  return NULL;
}

void stream_accept(struct streams *streams, struct request *r, enum error_code *code,
                   const char **why)
{
  uint64_t position = r->header.position;
  struct stream *s = stream_find(streams, &r->peer, r->header.step);
  *code = ERROR_BAD;
  *why = NULL;
  if (position)
    *why = refusal(s, position);
  else if (s && s->waiting)
    *why = "requests of the stream wait: begin it anew when they are answered";
  else if (!s && !(s = stream_room(streams, r->arrived)))
    *code = ERROR_BUSY, *why = "all streams are in use: end one, or try again later";
  if (*why) return;
  *code = 0;
  if (!position) stream_begin(streams, s, r);
  r->stream = s;
  r->position = (gidx)position;
  s->next += r->header.rows;
  s->heard = r->arrived;
  s->waiting++;
  ring_move(streams, s, 1);
}

void stream_break(const struct request *r)
{
  struct stream *s = r->stream;
  if (!s) return;
  s->lost = s->is_broken ? imin(s->lost, r->position) : r->position;
  s->is_broken = 1;
}

int stream_is_lost(const struct request *r)
{
  return r->stream->is_broken && r->position > r->stream->lost;
}

void stream_answered(struct streams *streams, struct request *r)
{
  struct stream *s = r->stream;
  if (!s) return;
  if (r->error) stream_break(r);
  s->waiting--;
  if (s->is_ended && !s->waiting) stream_drop(streams, s);
  r->stream = NULL;
}

void stream_end(struct streams *streams, const struct net_peer *peer, uint64_t number)
{
  struct stream *s = stream_find(streams, peer, number);
  if (!s) return;
  s->is_ended = 1;
  if (!s->waiting) stream_drop(streams, s);
}
