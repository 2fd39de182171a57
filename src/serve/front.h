/* SPDX-License-Identifier: BSD-3-Clause
 * The thread that owns the sockets.  It checks messages, queues requests, and sends replies.
 *
 * Floor: serve.  The main thread takes requests from the queues and gives them back when they are
 * done.  Shared fields are under the lock.  After a bad message its client gets the reason, and
 * other clients notice nothing. */
#ifndef SERVE_FRONT_H
#define SERVE_FRONT_H

#include <pthread.h>

#include "base/worker.h"
#include "serve/clients.h"
#include "serve/stream.h"

struct piece; /* feed.h */

/* Counts for the status, which also reports the queues.  The main thread adds to them. */
struct serve_counts {
  gidx steps, live_rows, bulk_rows, file_rows; /* steps done, and their rows */
  gidx live, bulk;                             /* requests that were answered with results */
  gidx refused[ERROR_CANCELLED + 1];           /* by code */
  gidx lost;                                   /* replies to clients that do not read */
  gidx files, files_done, files_failed;        /* files of the backlog: all, complete, failed */
};

enum { LATENCIES = 1024 };

struct lane; /* encode/lane.h */

struct front {
  /* Set by the caller. */
  struct message_limits limits;
  int credit;       /* most requests of one client that wait */
  gidx queue_bytes; /* most bytes of requests that wait */
  /* Most bytes of replies to one client that it has not taken, those to come included. */
  gidx unread_bytes;
  char hello[1024]; /* JSON that a client is told first */
  struct net_options net_options;
  struct lane *lane; /* computes rows; used to allocate pieces */
  /* Shared, under the lock. */
  pthread_mutex_t lock;
  pthread_cond_t changed;  /* a request or a piece of a file came */
  pthread_cond_t returned; /* a piece was given back */
  struct piece *pieces;    /* in order of their rows; borrowed */
  struct request_queue live, bulk, done;
  struct request_queue held; /* they wait for others of their streams; in no other queue */
  struct streams streams;
  gidx bytes;         /* of requests without a reply */
  int is_closing;     /* new requests are refused */
  int is_over;        /* the thread ends after it has sent `done` */
  uint64_t live_seen; /* ns: when the last live request came; 0: none has */
  struct serve_counts counts;
  uint64_t latencies[LATENCIES]; /* ns from arrival to reply of the last live requests */
  gidx n_latencies;
  int failed; /* the thread has ended with this status */
  /* Used by the thread alone. */
  struct net *net;
  struct clients clients;
  gidx owed; /* bytes that replies to come will have */
  struct worker worker;
  int wake; /* eventfd */
  uint64_t begun;
};

/* Accept clients.  ERR_CREATE. */
int front_open(struct front *f);
/* Send the replies that are ready, and end the thread. */
int front_close(struct front *f);
void front_free(struct front *f);

/* The status of the thread.  It fails if no client can reach the server any more. */
int front_check(struct front *f);
/* Wait for a request, at most `milliseconds`.  Returns the same status. */
int front_wait(struct front *f, int milliseconds);

/* Send a reply, data[bytes] from malloc().  It counts in `unread` until the client takes it.
 * Called by the thread. */
int front_send(struct front *f, const struct net_peer *peer, void *data, size_t bytes,
               struct unread *unread);

/* Hand over requests that are done, and in no queue, to be answered.  step: the step that had their
 * last rows. */
void front_answer(struct front *f, struct request_queue *done, uint64_t step);

#endif
