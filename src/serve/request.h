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
  struct request *next; /* the next in its queue, by arrival */
  struct net_peer peer;
  struct header header;
  uint64_t arrived;     /* ns */
  float *rows;          /* [n][p]; owned, as are the next three */
  float *tokens;        /* as in message_tokens(), to make rows of; NULL: the client sent rows */
  idx *watched;         /* [n_watched] ascending; NULL: all atoms */
  unsigned char *reply; /* header and arrays */
  idx n_watched;
  idx width;             /* entries of a row in the reply, w */
  struct stream *stream; /* the stream of its tokens; NULL: the client sent rows */
  gidx position;         /* position of its first token in the stream */
  gidx taken;            /* rows that steps have taken */
  gidx done;             /* rows that have results */
  int steps;             /* steps in work that have some of its rows */
  uint64_t terms;        /* hash terms of the rows that have results (model/identity.h) */
  gidx record;           /* its line of the ledger, from 1 on; 0: none */
  gidx reply_bytes;      /* of the reply */
  int is_cancelled;
  enum error_code error; /* 0: none */
  char text[160];        /* of the error */
};

/* ns of a clock that is never set back. */
uint64_t clock_ns(void);

/* Bytes of the reply to an encode request.  n_watched: the number of atoms that are wanted; -1:
 * all. */
gidx reply_bytes(const struct header *h, idx n_watched, const struct message_limits *limits);

/* Make a request.  It owns rows[] and watched[] from then on.  NULL: there is no memory. */
struct request *request_make(const struct net_peer *peer, const struct header *h, float *rows,
                             idx *watched, idx n_watched);
void request_free(struct request *r);
/* Bytes of its rows and tokens.  A client can compute the same number. */
gidx request_bytes(const struct request *r, idx p);

/* Allocate the reply.  ERR_MEMORY. */
int request_begin(struct request *r, const struct message_limits *limits);
/* Write n rows of results into the reply, from row r->done on: those from row `at` of the block
 * on. */
void request_fill(struct request *r, const struct message_limits *limits,
                  const struct support_block *block, gidx at, gidx n);

/* The reply as a message from malloc(), and its size; the caller owns it.  NULL: there is no
 * memory. */
unsigned char *request_reply(struct request *r, uint64_t step, size_t *bytes);

/* Give up a request: it is answered with an error. */
void request_refuse(struct request *r, enum error_code error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct request_queue { /* by arrival */
  struct request *first, *last;
  gidx count, rows;
};
void queue_add(struct request_queue *q, struct request *r);
/* Take out the request after `before`, or the first one if `before` is NULL. */
struct request *queue_take(struct request_queue *q, struct request *before);

#endif
