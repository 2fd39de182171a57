/* SPDX-License-Identifier: BSD-3-Clause
 * The thread that owns the sockets.  It checks messages, queues requests, and sends replies.
 *
 * Floor: serve.  The main thread takes requests from the queues and gives them back when they are
 * done.  Shared fields are used with the lock held.  If a message is bad, only its client is told,
 * with the reason. */
#ifndef SERVE_FRONT_H
#define SERVE_FRONT_H

#include <pthread.h>

#include "base/worker.h"
#include "serve/clients.h"
#include "serve/stream.h"

struct piece; /* feed.h */

/* Counts that the status reports.  Several threads add to them, with the lock held. */
struct serve_counts {
  gidx steps, live_rows, bulk_rows, file_rows; /* steps that have ended, and their rows */
  gidx live, bulk;                             /* requests that got results */
  gidx refused[ERROR_CANCELLED + 1];           /* refused requests, by error code */
  gidx lost;                                   /* replies to clients that are gone or do not read */
  gidx files, files_done, files_failed;        /* files of the backlog: all, complete, failed */
};

enum { LATENCIES = 1024 };

struct lane; /* encode/lane.h */

struct front {
  /* Set by the caller. */
  struct message_limits limits;
  /* The largest number of requests of one client that wait, plus replies that it has not taken. */
  int credit;
  gidx queue_bytes; /* most bytes of requests that wait; one request is always accepted */
  /* The most bytes of replies that one client has not taken, with the replies to its waiting
   * requests; one reply is always allowed. */
  gidx unread_bytes;
  char hello[1024]; /* JSON for the reply to hello */
  struct net_options net_options;
  struct lane *lane; /* computes rows; pieces are pinned for it */
  /* Shared, under the lock. */
  pthread_mutex_t lock;
  pthread_cond_t changed;  /* a request, a cancellation or a piece came, or the thread ended */
  pthread_cond_t returned; /* a piece was given back */
  struct piece *pieces;    /* queue of pieces, in the order of their rows; borrowed */
  struct request_queue live, bulk, done;
  struct request_queue held; /* requests that wait for earlier requests of their streams */
  struct streams streams;
  gidx bytes;         /* bytes of requests without a reply */
  int is_closing;     /* new requests are refused */
  int is_over;        /* the thread ends after it has sent `done` */
  uint64_t live_seen; /* ns: when the last live request came; 0: none came */
  struct serve_counts counts;
  uint64_t latencies[LATENCIES]; /* ns from arrival to reply, of the last live requests */
  gidx n_latencies;              /* number of live requests that got results so far */
  int failed;                    /* the thread has ended with this status */
  /* Used by the thread only. */
  struct net *net;
  struct clients clients;
  gidx owed; /* bytes of the replies to all requests that wait */
  struct worker worker;
  int wake;       /* eventfd that wakes the thread */
  uint64_t begun; /* ns: when front_open() was called */
};

/* Begin to accept clients, and start the thread.  ERR_CREATE, ERR_MEMORY. */
int front_open(struct front *f);
/* Send the replies that are ready, refuse requests that are on their way, and end the thread; this
 * takes 0.1 to 1 s.  Returns its status. */
int front_close(struct front *f);
void front_free(struct front *f);

/* OK while the thread runs.  Otherwise the error that ended it: no client can reach the server any
 * more. */
int front_check(struct front *f);
/* Wait at most `milliseconds` for a request or a piece.  Returns front_check(). */
int front_wait(struct front *f, int milliseconds);

/* Send a reply, data[bytes] from malloc(), which net_send() frees.  Until the transport has sent or
 * lost the reply, *unread counts it; unread NULL: it is not counted.  Called by the thread. */
int front_send(struct front *f, const struct net_peer *peer, void *data, size_t bytes,
               struct unread *unread);

/* Move all requests from *done to the queue of requests that the thread answers.  step: the step
 * that had their last rows. */
void front_answer(struct front *f, struct request_queue *done, uint64_t step);

#endif
