/* SPDX-License-Identifier: BSD-3-Clause
 * The load of a server under test: clients that do not wait for replies before they send the next
 * request, and a backlog of rows that never ends.
 *
 * Floor: bench. */
#ifndef BENCH_SERVE_LOAD_H
#define BENCH_SERVE_LOAD_H

#include <pthread.h>

#include "base/worker.h"
#include "serve/feed.h"
#include "serve/serve.h"

struct serve_load {
  const char *path;
  int streams; /* number of clients; 0: none */
  int has_backlog;
  real rate;          /* requests of one row per second and client, as a Poisson process */
  real warm, seconds; /* how long the load runs unmeasured, and then measured */
  const float *rows;  /* [n_rows][p] rows to choose from; borrowed */
  gidx n_rows;
  idx p;
  gidx piece; /* rows of a piece of the backlog */
  /* Results. */
  double *latency; /* [answered] ms from the time when a request was due to its reply; owned */
  gidx requests, answered, refused;
  double *status; /* [statuses] latency of status requests, ms; owned */
  gidx statuses;
  double backlog; /* rows of the backlog done per second */
  gidx steps;
  int is_over; /* 1: the server shall end; it checks this between steps */
  /* Used by the threads of the clients and of the backlog. */
  struct front *front;
  struct worker worker;
  struct net_clients *clients;
};

/* Start the thread of the clients.  Call this when the server accepts clients. */
int serve_load_begin(struct serve_load *load);
/* Wait until this thread has ended; returns its status. */
int serve_load_end(struct serve_load *load);
void serve_load_free(struct serve_load *load);

/* Feed the backlog until the load is over; a thread of the server runs this. */
int serve_load_feed(void *load, struct front *front);

#endif
