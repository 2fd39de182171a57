/* SPDX-License-Identifier: BSD-3-Clause
 * Streams of tokens.  Clients send a stream piece by piece.  Each stream has a slot for its state.
 *
 * Floor: serve.  Called with the lock of struct front held.  A request names the position of its
 * first token in the stream.  So the server notices if an earlier request of the stream was
 * refused.  After such a loss the client must begin the stream again, with token 0. */
#ifndef SERVE_STREAM_H
#define SERVE_STREAM_H

#include "serve/request.h"

struct stream {
  struct net_peer peer;
  uint64_t number; /* chosen by the client */
  gidx next;       /* tokens that were accepted */
  gidx taken;      /* tokens that steps have taken */
  gidx waiting;    /* requests without a reply so far */
  uint64_t heard;  /* ns: when the last request came */
  int is_used;
  int is_broken; /* a request was given up: later ones are refused */
  gidx lost;     /* if is_broken: position of the first token that was given up */
  int is_ended;  /* the client has ended it: its slot is free when no request waits */
  /* Slots form a ring, ordered by the time of their last request; free ones come first.  chained:
   * the next slot in the hash chain of this one; -1: none. */
  idx older, newer, chained;
};

struct streams {
  struct stream *all; /* [count + 1] the slots, then the head of the ring; owned */
  idx *chains;        /* [count] the first slot of each hash chain; owned */
  idx count;
};

gidx streams_bytes(idx count);
int streams_init(struct streams *streams, idx count);
void streams_free(struct streams *streams);

/* Find the stream of a request.  *code <- 0: the request is accepted.  Otherwise *code and *why say
 * why not. */
void stream_accept(struct streams *streams, struct request *r, enum error_code *code,
                   const char **why);
/* Call this if a request is given up.  If it belongs to a stream, its tokens and all later tokens
 * get no rows.  Earlier ones do. */
void stream_break(const struct request *r);
/* Does a request follow one of its stream that was given up? */
int stream_is_lost(const struct request *r);
/* Call this when a request of a stream was answered or given up. */
void stream_answered(struct streams *streams, struct request *r);
/* The client ends the stream. */
void stream_end(struct streams *streams, const struct net_peer *peer, uint64_t number);

#endif
