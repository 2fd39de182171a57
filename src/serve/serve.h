/* SPDX-License-Identifier: BSD-3-Clause
 * The server.  Clients send rows and get codes.  Rows are computed in steps.  Rows of live requests
 * come first in a step.
 *
 * Floor: serve.  Rank 0 serves clients, and all ranks compute parts of its steps (ranks.h).  The
 * main thread of rank 0 plans and computes (serve.c, step.c).  Another thread owns the sockets
 * (front.h).  The codes of a row are those of `encode`, bit for bit.  They do not depend on other
 * requests (encode/lane.h). */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

#include "base/json.h"
#include "base/stop.h"
#include "encode/encode.h"
#include "model/capture.h"
#include "model/ledger.h"
#include "serve/front.h"

/* A function that feeds rows of files (feed.h).  A separate thread runs it while requests are
 * answered. */
struct serve_files {
  int (*run)(void *self, struct front *front); /* NULL: there are no files */
  void *self;
};

/* What is recorded for a ledger (recorder.h). */
struct serve_record_options {
  int is_on, has_rows; /* has_rows: record the rows of requests, too */
  gidx limit;          /* most bytes that are recorded */
};
struct serve_record {
  const struct ledger *ledger;
  const float *rows;     /* [n_rows][p] of the ledger's requests; NULL: not recorded */
  gidx n_rows, left_out; /* left_out: steps that are not in the ledger */
  idx p;
  uint64_t dictionary; /* hash of the dictionary */
};

/* The largest number of pieces of a file in the queue. */
enum { FILE_PIECES = 4 };

/* Facts that are known when the server begins to accept clients. */
struct serve_facts {
  uint64_t dictionary; /* hash of the dictionary */
  const char *address; /* address for clients; valid until ready() returns */
  gidx target;         /* T: rows of a step while a live client waits (model/admission.h) */
  const char *device;  /* kind of device */
  char variant[64];    /* instruction set, or the GPU */
  real cosine;         /* decoder cosine, for results of files; NaN: not computed */
};

struct serve_task {
  const struct encode_task *encode; /* encode->block is knobs.step_rows; borrowed */
  struct admission_knobs knobs;     /* target 0: it is found from target_ms */
  real target_ms;                   /* desired time of a step while a live client waits */
  real linger_ms;     /* a live client counts as waiting for this time after its request came */
  real drain_seconds; /* at the end: time for requests that still wait */
  gidx live_rows, bulk_rows;        /* most rows of a request */
  const struct mixer_source *mixer; /* its net makes rows from tokens; NULL: none */
  idx streams;                      /* most streams of tokens */
  int credit;                       /* as in struct front, as are the next two */
  gidx queue_bytes, unread_bytes;
  const char *address; /* address and keys of the server (net.h) */
  const struct keys *keys;
  int (*opened)(void *self); /* called on every rank after all inputs are read; NULL: none */
  /* called on rank 0 when clients are accepted */
  int (*ready)(void *self, const struct serve_facts *facts);
  void *self;
  struct serve_files files;
  struct serve_record_options record;
  struct stops stops; /* checked between steps */
};

struct serve; /* step.h */

/* Serve until task->stops asks for an end, then answer the requests that wait.  *serve <- the
 * server, for the calls below.  ERR_CREATE: cannot listen.  Collective. */
int serve_run(const struct serve_task *task, struct comm *c, struct serve **serve);
/* Rank 0: add the status of the server to an open JSON object. */
void serve_json(struct serve *serve, struct json *j);
/* Rank 0: the record; its arrays are valid until serve_free(). */
struct serve_record serve_record(const struct serve *serve);
void serve_free(struct serve *serve);

#endif
