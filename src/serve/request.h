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
  struct request *next; /* of its queue, by arrival */
  struct net_peer peer;
  struct header header;
  uint64_t arrived;     /* ns */
  float *rows;          /* [n][p]; owned, as are the next three */
  float *tokens;        /* as of message_tokens(), from which rows are made; NULL: rows came */
  idx *watched;         /* [n_watched] ascending; NULL: all atoms */
  unsigned char *reply; /* header and arrays */
  idx n_watched;
  idx width;             /* entries of a row in the reply, w */
  struct stream *stream; /* of tokens; NULL: rows came */
  gidx position;         /* in the stream, of the first token */
  gidx taken;            /* rows that steps have taken */
  gidx done;             /* rows that have results */
  int steps;             /* in work that have some of its rows */
  uint64_t terms;        /* of these (model/identity.h) */
  gidx record;           /* its line of the ledger, from 1 on; 0: none */
  gidx reply_bytes;      /* of the reply */
  int is_cancelled;
  enum error_code error; /* 0: none */
  char text[160];        /* of the error */
};

/* ns of a clock that goes on evenly. */
uint64_t clock_ns(void);

/* Bytes of the reply to an encode request, of whose atoms n_watched alone are wanted, or all where
 * that is -1. */
gidx reply_bytes(const struct header *h, idx n_watched, const struct message_limits *limits);

/* A request of these rows, which are the struct's then, and so is watched; NULL where there is no
 * memory. */
struct request *request_make(const struct net_peer *peer, const struct header *h, float *rows,
                             idx *watched, idx n_watched);
void request_free(struct request *r);
/* Bytes of its rows and tokens, which a client can count too. */
gidx request_bytes(const struct request *r, idx p);

/* Make room for the reply.  ERR_MEMORY. */
int request_begin(struct request *r, const struct message_limits *limits);
/* Rows r->done and on have results: those of a block from row `at` on, `n` of them. */
void request_fill(struct request *r, const struct message_limits *limits,
                  const struct support_block *block, gidx at, gidx n);

/* The message that answers, of malloc(), and its size; the reply is the caller's then.  NULL where
 * there is no memory. */
unsigned char *request_reply(struct request *r, uint64_t step, size_t *bytes);

/* Give up a request: it is answered with an error. */
void request_refuse(struct request *r, enum error_code error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct request_queue { /* by arrival */
  struct request *first, *last;
  gidx count, rows;
};
void queue_add(struct request_queue *q, struct request *r);
/* Take out the request behind `before`, the first where that is NULL. */
struct request *queue_take(struct request_queue *q, struct request *before);

#endif
