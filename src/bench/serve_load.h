/* SPDX-License-Identifier: BSD-3-Clause
 * What a server under measurement is asked: clients whose requests do not wait for replies, and
 * rows of a backlog that never ends.
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
  int streams; /* clients; 0: nobody asks */
  int has_backlog;
  real rate;          /* rows a second of each, one a request, by a Poisson process */
  real warm, seconds; /* before measuring, and measured */
  const float *rows;  /* [n_rows][p] to draw from; borrowed */
  gidx n_rows;
  idx p;
  gidx piece; /* rows of a piece of the backlog */
  /* Results. */
  double *latency; /* [requests] ms from when a request was due to its reply; owned */
  gidx requests, answered, refused;
  double *status; /* [statuses] ms; owned */
  gidx statuses;
  double backlog; /* rows a second */
  gidx steps;
  int is_over; /* asked by the server between steps */
  /* Of the threads. */
  struct front *front;
  struct worker worker;
  struct net_clients *clients;
  gidx first_row; /* of the backlog, when measuring began */
};

/* Clients begin, in a thread, once the server accepts them. */
int serve_load_begin(struct serve_load *load);
/* The thread has ended. */
int serve_load_end(struct serve_load *load);
void serve_load_free(struct serve_load *load);

/* The backlog, in a thread of the server's. */
int serve_load_feed(void *load, struct front *front);

#endif
