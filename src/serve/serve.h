/* SPDX-License-Identifier: BSD-3-Clause
 * The server.  Clients send rows and get codes.  Rows are computed in steps, in which rows of live
 * requests come first.
 *
 * Floor: serve.  Rank 0 serves clients; the other ranks compute parts of its steps (ranks.h).  Its
 * main thread plans and computes (serve.c, step.c).  Another thread owns the sockets (front.h).
 * The codes of a row are those of `encode`, bit for bit, whatever else is served
 * (encode/lane.h). */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

#include "base/json.h"
#include "base/stop.h"
#include "encode/encode.h"
#include "model/capture.h"
#include "model/ledger.h"
#include "serve/front.h"

/* A function that a thread of its own runs while requests are answered.  It feeds rows of files
 * (feed.h). */
struct serve_files {
  int (*run)(void *self, struct front *front); /* NULL: there are none */
  void *self;
};

/* What is recorded for a ledger (recorder.h). */
struct serve_record_options {
  int is_on, has_rows; /* has_rows: record the rows of requests, too */
  gidx limit;          /* most bytes that are recorded */
};
struct serve_record {
  const struct ledger *ledger;
  const float *rows; /* [n_rows][p] of its requests */
  gidx n_rows, left_out;
  idx p;
  uint64_t dictionary;
};

/* The most pieces of a file in the queue. */
enum { FILE_PIECES = 4 };

/* Facts of the server when it begins to accept clients. */
struct serve_facts {
  uint64_t dictionary; /* its hash */
  const char *address; /* address for clients; valid until ready() returns */
  gidx target;         /* rows of a step */
  const char *device;  /* kind of device */
  char variant[64];    /* instruction set, or the GPU */
  real cosine;         /* the largest decoder cosine, for results of files; NaN: there are none */
};

struct serve_task {
  const struct encode_task *encode; /* its block is knobs.step_rows; borrowed */
  struct admission_knobs knobs;     /* target 0: it is measured */
  real target_ms;                   /* longest time of a step while clients wait */
  real linger_ms; /* clients count as waiting until so long after the last live request */
  real drain_seconds;
  gidx live_rows, bulk_rows;        /* most rows of a request */
  const struct mixer_source *mixer; /* its net makes rows of tokens; NULL: none */
  idx streams;                      /* most streams of tokens */
  int credit;
  gidx queue_bytes, unread_bytes;
  const char *address; /* address and keys of the server (net.h) */
  const struct keys *keys;
  int (*opened)(void *self); /* called on every rank when all inputs were read; NULL: none */
  int (*ready)(void *self, const struct serve_facts *facts); /* called when clients are accepted */
  void *self;
  struct serve_files files;
  struct serve_record_options record;
  struct stops stops; /* asked between steps */
};

struct serve; /* step.h */

/* Serve until asked to stop, then answer the requests that wait.  *serve <- the server with its
 * results, for serve_json(); valid until serve_free().  ERR_CREATE: cannot listen. */
int serve_run(const struct serve_task *task, struct comm *c, struct serve **serve);
/* Add the status of the server to an open JSON object. */
void serve_json(struct serve *serve, struct json *j);
/* The record, which the server owns. */
struct serve_record serve_record(const struct serve *serve);
void serve_free(struct serve *serve);

#endif
