/* SPDX-License-Identifier: BSD-3-Clause
 * The thread that owns the sockets: it checks what comes, queues it, and sends replies.
 *
 * Floor: serve.  The main thread takes requests from the queues and gives them back when they are
 * done; what is shared is under the lock.  A bad message fails by itself: its client gets the
 * reason, and nothing else changes. */
#ifndef SERVE_FRONT_H
#define SERVE_FRONT_H

#include <pthread.h>

#include "base/worker.h"
#include "serve/clients.h"
#include "serve/stream.h"

struct piece; /* feed.h */

/* What status says, beside the queues; the main thread adds to it. */
struct serve_counts {
  gidx steps, live_rows, bulk_rows, file_rows; /* computed */
  gidx live, bulk;                             /* requests with results */
  gidx refused[ERROR_CANCELLED + 1];           /* by code */
  gidx lost;                                   /* replies, of clients that do not read */
  gidx files, files_done, files_failed; /* of the backlog: all; complete; refused or broken */
};

enum { LATENCIES = 1024 };

struct lane; /* encode/lane.h */

struct front {
  /* Set by the caller. */
  struct message_limits limits;
  int credit;       /* requests of a client that may wait */
  gidx queue_bytes; /* of requests that wait at most */
  gidx
      unread_bytes; /* of replies to a client that are to come, or that it has not taken, at most */
  char hello[1024]; /* JSON: what a client is told first */
  struct net_options net_options;
  struct lane *lane; /* which takes rows of pieces */
  /* Shared, under the lock. */
  pthread_mutex_t lock;
  pthread_cond_t changed;  /* a request or a piece of a file came */
  pthread_cond_t returned; /* a piece went back */
  struct piece *pieces;    /* in order of their rows; borrowed */
  struct request_queue live, bulk, done;
  struct request_queue held; /* behind others of their streams, and in no queue of the plan yet */
  struct streams streams;
  gidx bytes;         /* of requests without a reply */
  int is_closing;     /* nothing new is taken */
  int is_over;        /* when `done` is sent, end */
  uint64_t live_seen; /* ns: when the last live request came; 0: none has */
  struct serve_counts counts;
  uint64_t latencies[LATENCIES]; /* ns from arrival to reply of the last live requests */
  gidx n_latencies;
  int failed; /* the thread has ended with this status */
  /* Of the thread. */
  struct net *net;
  struct clients clients;
  gidx owed; /* bytes of replies that are to come */
  struct worker worker;
  int wake; /* eventfd */
  uint64_t begun;
};

/* Accept clients.  ERR_CREATE. */
int front_open(struct front *f);
/* Send what is done, and end. */
int front_close(struct front *f);
void front_free(struct front *f);

/* The status of the thread, which fails where nobody can reach the server any more. */
int front_check(struct front *f);
/* Wait for a request, some milliseconds at most; the same status. */
int front_wait(struct front *f, int milliseconds);

/* Send a reply of malloc(), which counts in `unread` until it is taken.  Of the thread. */
int front_send(struct front *f, const struct net_peer *peer, void *data, size_t bytes,
               struct unread *unread);

/* These requests, which are in no queue, are done: they are answered. */
void front_answer(struct front *f, struct request_queue *done, uint64_t step);

#endif
