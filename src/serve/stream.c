/* SPDX-License-Identifier: BSD-3-Clause
 * A short list, searched from its begin: a token takes more than that. */
#include "serve/stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"

/* ns: a stream that was silent for so long is given to a new one where there is no other. */
static const uint64_t silence = 60000000000u;

gidx streams_bytes(idx count)
{
  return (count + 1) * (gidx)sizeof(struct stream);
}

int streams_init(struct streams *streams, idx count)
{
  streams->all = memory_zeroed((size_t)streams_bytes(count));
  CHECK(streams->all, ERR_MEMORY, "cannot allocate %d streams", count);
  streams->count = count;
  return OK;
}

void streams_free(struct streams *streams)
{
  free(streams->all);
  *streams = (struct streams){0};
}

static struct stream *stream_find(struct streams *streams, const struct net_peer *peer,
                                  uint64_t number)
{
  for (idx i = 0; i < streams->count; i++) {
    struct stream *s = &streams->all[i];
    if (s->is_used && s->number == number && s->peer.bytes == peer->bytes &&
        !memcmp(s->peer.name, peer->name, peer->bytes))
      return s;
  }
  return NULL;
}

/* A slot that is free, or of the stream that was silent for longest; NULL: there is none. */
static struct stream *stream_room(struct streams *streams, uint64_t now)
{
  struct stream *oldest = NULL;
  for (idx i = 0; i < streams->count; i++) {
    struct stream *s = &streams->all[i];
    if (!s->is_used) return s;
    if (!s->waiting && now - s->heard > silence && (!oldest || s->heard < oldest->heard))
      oldest = s;
  }
  return oldest;
}

/* Why a stream does not go on with a request; NULL: it does. */
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
  if (!position) *s = (struct stream){.peer = r->peer, .number = r->header.step, .is_used = 1};
  r->stream = s;
  r->position = (gidx)position;
  s->next += r->header.rows;
  s->heard = r->arrived;
  s->waiting++;
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

void stream_answered(struct request *r)
{
  struct stream *s = r->stream;
  if (!s) return;
  if (r->error) stream_break(r);
  s->waiting--;
  s->is_used = !(s->is_ended && !s->waiting);
  r->stream = NULL;
}

void stream_end(struct streams *streams, const struct net_peer *peer, uint64_t number)
{
  struct stream *s = stream_find(streams, peer, number);
  if (!s) return;
  s->is_ended = 1;
  s->is_used = s->waiting > 0;
}
