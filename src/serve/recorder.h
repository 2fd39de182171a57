/* SPDX-License-Identifier: BSD-3-Clause
 * Writes down what a server does, in memory, for its ledger.
 *
 * Floor: serve.  Of the main thread.  Idle time takes no memory; where the limit is reached, or
 * there is no more memory, the ledger ends with the last whole step, and the server goes on. */
#ifndef SERVE_RECORDER_H
#define SERVE_RECORDER_H

#include "model/ledger.h"
#include "serve/request.h"

struct recorder {
  int is_on;    /* set by the caller, as are the next two */
  int has_rows; /* the rows of requests too */
  gidx limit;   /* bytes */
  idx p;
  struct ledger ledger; /* arrays of malloc(); recorder_free() */
  float *rows;          /* [n_rows][p] of all requests, as they came; owned */
  gidx n_rows, row_capacity;
  gidx left_out; /* steps behind the end of the ledger */
  /* Of the step. */
  int is_full;
  gidx parts, requests, step_rows; /* counts when it began */
  uint64_t begun, planned;         /* ns: of the server; of the step */
  struct admission plan;
  gidx watched, file_rows;
};

/* Step n begins: its queues are planned from. */
void recorder_begin(struct recorder *r, gidx n, const struct request_queue *live,
                    const struct request_queue *bulk);
void recorder_plan(struct recorder *r, int watched, gidx file_rows, const struct admission *plan);
/* Rows of a request, or with NULL those of a file, are in step n. */
void recorder_part(struct recorder *r, gidx n, const struct request *request, gidx file, gidx first,
                   gidx rows);
/* The step has ended, with so many rows; a step without any is none. */
void recorder_end(struct recorder *r, gidx n, gidx rows);
/* A request is in no queue any more when step n is planned; the first call counts. */
void recorder_gone(struct recorder *r, gidx n, const struct request *request);

void recorder_free(struct recorder *r);

#endif
