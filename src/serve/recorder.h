/* SPDX-License-Identifier: BSD-3-Clause
 * Records the steps and requests of a server in memory, for its ledger.
 *
 * Floor: serve.  Used by the main thread.  Idle time takes no memory.  When the limit is reached,
 * or there is no more memory, the ledger ends with the last whole step, and the server goes on. */
#ifndef SERVE_RECORDER_H
#define SERVE_RECORDER_H

#include "model/ledger.h"
#include "serve/request.h"

struct recorder {
  int is_on;    /* set by the caller, as are the next two */
  int has_rows; /* record the rows of requests, too */
  gidx limit;   /* bytes of all tables; a large one grows in place, by mremap() of realloc() */
  idx p;
  struct ledger ledger; /* arrays of malloc(); recorder_free() */
  float *rows;          /* [n_rows][p] of all requests, as they came; owned */
  gidx n_rows, row_capacity;
  gidx left_out; /* steps after the end of the ledger */
  int is_full;
  gidx end;       /* if is_full: the number of steps in the ledger, once those in work have ended */
  uint64_t begun; /* ns: when the server began */
};

/* Consecutive rows of a step that come from one request or file. */
struct recorded_part {
  gidx file, first, rows; /* file: line of the file in the list; 0: the rows are of a request */
};

/* Facts of a step when it is planned.  The caller fills in the last three. */
struct recorded_step {
  int is_on;                  /* it will be in the ledger */
  gidx parts, requests, rows; /* counts before it */
  uint64_t planned;           /* ns */
  int watched;
  gidx file_rows;
  struct admission plan;
};

/* Step n begins.  live, bulk: the queues that it is planned from. */
void recorder_begin(struct recorder *r, struct recorded_step *step, gidx n,
                    const struct request_queue *live, const struct request_queue *bulk);
/* The newest step has these rows of a request, or, if that is NULL, of a file. */
void recorder_part(struct recorder *r, struct recorded_step *step, gidx n,
                   const struct request *request, const struct recorded_part *part);
/* The step has ended, with so many rows.  A step without rows is not recorded.  Steps end in
 * order. */
void recorder_end(struct recorder *r, const struct recorded_step *step, gidx n, gidx rows);
/* The request has left the queues before step n is planned.  Calls after the first one change
 * nothing. */
void recorder_gone(struct recorder *r, gidx n, const struct request *request);

void recorder_free(struct recorder *r);

#endif
