/* SPDX-License-Identifier: BSD-3-Clause
 * The load of a server that is measured: clients whose requests do not wait for replies, and a
 * backlog of rows that never ends.
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
  real rate;          /* rows per second of each client, one per request, as a Poisson process */
  real warm, seconds; /* seconds before the measurement, and of it */
  const float *rows;  /* [n_rows][p] rows to choose from; borrowed */
  gidx n_rows;
  idx p;
  gidx piece; /* rows of a piece of the backlog */
  /* Results. */
  double *latency; /* [requests] ms from the time when a request was due to its reply; owned */
  gidx requests, answered, refused;
  double *status; /* [statuses] latency of status requests, ms; owned */
  gidx statuses;
  double backlog; /* rows of the backlog per second */
  gidx steps;
  int is_over; /* 1: the server shall end; it looks between steps */
  /* Used by the threads. */
  struct front *front;
  struct worker worker;
  struct net_clients *clients;
  gidx first_row; /* rows of the backlog that were done when the measurement began */
};

/* Start the thread of the clients, once the server accepts them. */
int serve_load_begin(struct serve_load *load);
/* Wait until this thread has ended. */
int serve_load_end(struct serve_load *load);
void serve_load_free(struct serve_load *load);

/* Feed the backlog; a thread of the server runs this. */
int serve_load_feed(void *load, struct front *front);

#endif
