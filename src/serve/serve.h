/* SPDX-License-Identifier: BSD-3-Clause
 * The server: clients' rows in, their codes out, in steps that live rows come first in.
 *
 * Floor: serve.  Rank 0 serves, and the others compute parts of its steps (ranks.h).  Its main
 * thread plans and computes (serve.c, step.c); the thread of front.h owns the sockets.  Each row's
 * codes are those of `encode`, bit for bit, whatever else is served (lane.h). */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

#include "base/json.h"
#include "base/stop.h"
#include "encode/encode.h"
#include "model/capture.h"
#include "model/ledger.h"
#include "serve/front.h"

/* What a thread of its own does while requests are answered: it feeds rows of files (feed.h). */
struct serve_files {
  int (*run)(void *self, struct front *front); /* NULL: there are none */
  void *self;
};

/* What is written down for a ledger (recorder.h). */
struct serve_record_options {
  int is_on, has_rows; /* the second: rows of requests too */
  gidx limit;          /* bytes: what is beyond them is left out */
};
struct serve_record {
  const struct ledger *ledger;
  const float *rows; /* [n_rows][p] of its requests */
  gidx n_rows, left_out;
  idx p;
  uint64_t dictionary;
};

/* Pieces of a file that are in the queue at most. */
enum { FILE_PIECES = 4 };

/* What is known when clients are accepted. */
struct serve_facts {
  uint64_t dictionary; /* its hash */
  const char *address; /* what clients connect to, until ready() returns */
  gidx target;         /* rows of a step */
  const char *device;  /* kind */
  char variant[64];    /* instruction set, or the GPU */
  real cosine;         /* the decoder cosine, for files: NaN where there are none */
};

struct serve_task {
  const struct encode_task *encode; /* its block is knobs.step_rows; borrowed */
  struct admission_knobs knobs;     /* target 0: it is measured */
  real target_ms;                   /* of a step that somebody waits for */
  real linger_ms; /* how long after the last live request somebody is said to watch */
  real drain_seconds;
  gidx live_rows, bulk_rows;        /* of a request at most */
  const struct mixer_source *mixer; /* whose net makes rows of tokens; NULL: none */
  idx streams;                      /* of these at most */
  int credit;
  gidx queue_bytes, unread_bytes;
  const char *address; /* where it listens, and with which keys (net.h) */
  const struct keys *keys;
  int (*opened)(void *self); /* on every rank: all inputs were read; NULL */
  int (*ready)(void *self, const struct serve_facts *facts); /* clients are accepted from here on */
  void *self;
  struct serve_files files;
  struct serve_record_options record;
  struct stops stops; /* asked between steps */
};

struct serve; /* step.h */

/* Serve until asked to stop, then answer what waits.  *serve is the result, for serve_json(), until
 * serve_free().  ERR_CREATE: cannot listen. */
int serve_run(const struct serve_task *task, struct comm *c, struct serve **serve);
/* What status says, into an object that is open. */
void serve_json(struct serve *serve, struct json *j);
/* What was recorded, which belongs to the server. */
struct serve_record serve_record(const struct serve *serve);
void serve_free(struct serve *serve);

#endif
