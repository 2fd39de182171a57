/* SPDX-License-Identifier: BSD-3-Clause
 * Records the steps and requests of a server in memory, for its ledger.
 *
 * Floor: serve.  Used by the main thread.  While the server is idle, nothing is recorded.  When
 * the limit is reached, or there is no more memory, the ledger ends with the last step that was
 * recorded completely, and the server continues. */
#ifndef SERVE_RECORDER_H
#define SERVE_RECORDER_H

#include "model/ledger.h"
#include "serve/request.h"

struct recorder {
  int is_on;    /* set by the caller, as are the next two */
  int has_rows; /* record the rows of requests, too */
  /* Most bytes of all tables and rows.  realloc() moves the pages of a large table, so that the
   * table never takes twice its memory. */
  gidx limit;
  idx p;
  struct ledger ledger; /* its tables are owned */
  float *rows;          /* [n_rows][p] of all requests, as they were sent; owned */
  gidx n_rows, row_capacity;
  gidx left_out; /* steps after the end of the ledger */
  int is_full;
  gidx end;       /* if is_full: number of the first step that is not in the ledger */
  uint64_t begun; /* ns: when the server began */
};

/* Consecutive rows of a step that come from one request or file. */
struct recorded_part {
  gidx file, first, rows; /* file: line of the file in the list; 0: the rows are of a request */
};

/* Facts of a step when it is planned.  The caller fills in the last three. */
struct recorded_step {
  int is_on;                  /* it will be in the ledger */
  gidx parts, requests, rows; /* counts in the ledger before this step */
  uint64_t planned;           /* ns: when the step was planned */
  int watched;                /* 1: a live request waits, or came lately (L.6 of doc/live.md) */
  gidx file_rows;             /* rows of files that wait */
  struct admission plan;
};

/* Step n begins.  live, bulk: the queues from which it is planned. */
void recorder_begin(struct recorder *r, struct recorded_step *step, gidx n,
                    const struct request_queue *live, const struct request_queue *bulk);
/* Step n has these rows of a request.  request NULL: they are rows of a file. */
void recorder_part(struct recorder *r, struct recorded_step *step, gidx n,
                   const struct request *request, const struct recorded_part *part);
/* Step n has ended, and had `rows` rows.  A step without rows is not recorded.  Steps end in
 * order. */
void recorder_end(struct recorder *r, const struct recorded_step *step, gidx n, gidx rows);
/* A request has left the queues before step n is planned.  Only the first call for a request has an
 * effect. */
void recorder_gone(struct recorder *r, gidx n, const struct request *request);

void recorder_free(struct recorder *r);

#endif
