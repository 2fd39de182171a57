/* SPDX-License-Identifier: BSD-3-Clause
 * A request for codes, from its arrival to its reply.
 *
 * Floor: serve. */
#ifndef SERVE_REQUEST_H
#define SERVE_REQUEST_H

#include "model/results.h"
#include "net/net.h"
#include "serve/message.h"

struct request {
  struct request *next; /* the next request in the same queue */
  struct net_peer peer;
  struct header header;
  uint64_t arrived;     /* ns: when the server received it */
  float *rows;          /* [n][p]; owned, as are the next three */
  float *tokens;        /* as in message_tokens(): the rows are made from them; NULL: no mixer */
  idx *watched;         /* [n_watched] ascending; NULL: all atoms */
  unsigned char *reply; /* header and arrays */
  idx n_watched;
  idx width;             /* entries per row in the reply: w of doc/live.md */
  struct stream *stream; /* the stream of its tokens; NULL: no stream */
  gidx position;         /* position of its first token in the stream */
  gidx taken;            /* rows that steps have taken */
  gidx done;             /* rows that have results */
  int steps;             /* number of steps in work that have some of its rows */
  uint64_t terms;        /* sum of the hash terms of rows with results (model/identity.h) */
  gidx record;           /* number of its line in the ledger, from 1 on; 0: none */
  gidx reply_bytes;      /* size of the reply */
  int is_cancelled;
  enum error_code error; /* 0: none */
  char text[160];        /* text of the error */
};

/* The time of a monotonic clock, in ns. */
uint64_t clock_ns(void);

/* The number of bytes of the reply to an encode or mixer request.  n_watched: the number of atoms
 * that the client watches; -1: codes of all atoms are wanted. */
gidx reply_bytes(const struct header *h, idx n_watched, const struct message_limits *limits);

/* Make a request, which then owns rows[] and watched[].  NULL: there is no memory. */
struct request *request_make(const struct net_peer *peer, const struct header *h, float *rows,
                             idx *watched, idx n_watched);
void request_free(struct request *r);
/* The number of bytes of its rows and tokens in memory.  A client can compute the same number. */
gidx request_bytes(const struct request *r, idx p);

/* Allocate the reply, and set r->width.  ERR_MEMORY. */
int request_begin(struct request *r, const struct message_limits *limits);
/* Copy the results of rows at .. at + n - 1 of the block to the reply, from row r->done on.  Then
 * add n to r->done. */
void request_fill(struct request *r, const struct message_limits *limits,
                  const struct support_block *block, gidx at, gidx n);

/* Returns the reply, or the error, as a message data[*bytes] from malloc(), which the caller owns.
 * NULL: there is no memory. */
unsigned char *request_reply(struct request *r, uint64_t step, size_t *bytes);

/* Give up a request: its answer will be an error. */
void request_refuse(struct request *r, enum error_code error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct request_queue {
  struct request *first, *last;
  gidx count, rows; /* number of its requests; rows of all of them */
};
void queue_add(struct request_queue *q, struct request *r);
/* Remove and return the request after `before`; before NULL: the first request.  NULL: there is
 * none. */
struct request *queue_take(struct request_queue *q, struct request *before);

#endif
