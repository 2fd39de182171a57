/* SPDX-License-Identifier: BSD-3-Clause
 * Streams of tokens.  Clients send a stream piece by piece.  Each stream has a slot for its state.
 *
 * Floor: serve.  Called with the lock of struct front held.  A request names the position of its
 * first token in the stream.  So the server notices if it refused an earlier request of the stream.
 * Then the client must begin the stream again, with token 0. */
#ifndef SERVE_STREAM_H
#define SERVE_STREAM_H

#include "serve/request.h"

struct stream {
  struct net_peer peer;
  uint64_t number; /* chosen by the client */
  gidx next;       /* number of tokens that were accepted */
  gidx taken;      /* number of tokens that steps have taken */
  gidx waiting;    /* requests without a reply so far */
  uint64_t heard;  /* ns: when the last request came */
  int is_used;     /* 0: the slot is free */
  int is_broken;   /* a request was given up, so later requests are refused */
  gidx lost;       /* if is_broken: position of the first request that was given up */
  int is_ended;    /* the client has ended it; the slot becomes free when no request waits */
  /* Slots form a ring, ordered by the time of their last request; free slots come first.  chained:
   * the next slot in the same hash chain; -1: none. */
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

/* Find the stream of a request.  A request from token 0 on begins the stream, or begins it again.
 * *code <- 0: the request is accepted.  Otherwise *code and *why tell the error. */
void stream_accept(struct streams *streams, struct request *r, enum error_code *code,
                   const char **why);
/* Call this if a request is given up.  If it belongs to a stream, all later requests of the stream
 * are given up too. */
void stream_break(const struct request *r);
/* Was an earlier request of the same stream given up? */
int stream_is_lost(const struct request *r);
/* Call this for each request that is done or given up, before it is answered. */
void stream_answered(struct streams *streams, struct request *r);
/* The client ends the stream.  Its slot becomes free when none of its requests waits. */
void stream_end(struct streams *streams, const struct net_peer *peer, uint64_t number);

#endif
