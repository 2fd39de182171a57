/* SPDX-License-Identifier: BSD-3-Clause
 * Streams of tokens that clients send piece by piece; each has a slot for its state.
 *
 * Floor: serve.  Under the front's lock.  A request says which token of its stream is its first, so
 * that one which was refused is noticed; whoever lost one begins anew, with token 0. */
#ifndef SERVE_STREAM_H
#define SERVE_STREAM_H

#include "serve/request.h"

struct stream {
  struct net_peer peer;
  uint64_t number; /* the client's */
  gidx next;       /* tokens that were accepted */
  gidx taken;      /* that steps have taken */
  gidx waiting;    /* requests without a reply so far */
  uint64_t heard;  /* ns: when the last one came */
  int is_used;
  int is_broken; /* a request was given up: what comes behind it is refused */
  gidx lost;     /* then its first token, or that of the first such request */
  int is_ended;  /* by its client: it is free when nothing waits */
  /* Slots in a ring, by when they were heard, which free ones were not; and the next one of its
   * chain, -1: there is none. */
  idx older, newer, chained;
};

struct streams {
  struct stream *all; /* [count + 1] by slot, then the head of the ring; owned */
  idx *chains;        /* [count] first slots of streams, by a hash of client and number; owned */
  idx count;
};

gidx streams_bytes(idx count);
int streams_init(struct streams *streams, idx count);
void streams_free(struct streams *streams);

/* *code 0: the request has its stream, and counts as accepted.  Else its error, and why. */
void stream_accept(struct streams *streams, struct request *r, enum error_code *code,
                   const char **why);
/* A request is given up: if it is of a stream, its tokens and those behind them get no rows.  Those
 * before it do. */
void stream_break(const struct request *r);
/* Is a request behind one of its stream that was given up? */
int stream_is_lost(const struct request *r);
/* A request of a stream is answered, or given up. */
void stream_answered(struct streams *streams, struct request *r);
/* Its client sends no more of it. */
void stream_end(struct streams *streams, const struct net_peer *peer, uint64_t number);

#endif
