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
  gidx limit;   /* bytes of all tables; a large one grows in place, by mremap() of realloc() */
  idx p;
  struct ledger ledger; /* arrays of malloc(); recorder_free() */
  float *rows;          /* [n_rows][p] of all requests, as they came; owned */
  gidx n_rows, row_capacity;
  gidx left_out; /* steps behind the end of the ledger */
  int is_full;
  gidx end;       /* where it is full: steps that are in it, once those in work have ended */
  uint64_t begun; /* ns: of the server */
};

/* A run of rows of a step. */
struct recorded_part {
  gidx file, first, rows; /* file: its line in the list; 0: they are of a request */
};

/* What is known of a step when it is planned; the caller fills in the last three. */
struct recorded_step {
  int is_on;                  /* it will be in the ledger */
  gidx parts, requests, rows; /* counts before it */
  uint64_t planned;           /* ns */
  int watched;
  gidx file_rows;
  struct admission plan;
};

/* Step n begins: its queues are planned from. */
void recorder_begin(struct recorder *r, struct recorded_step *step, gidx n,
                    const struct request_queue *live, const struct request_queue *bulk);
/* Rows of a request, or with NULL those of a file, are in the newest step. */
void recorder_part(struct recorder *r, struct recorded_step *step, gidx n,
                   const struct request *request, const struct recorded_part *part);
/* The step has ended, with so many rows; a step without any is none.  Steps end in their order. */
void recorder_end(struct recorder *r, const struct recorded_step *step, gidx n, gidx rows);
/* A request is in no queue any more when step n is planned; the first call counts. */
void recorder_gone(struct recorder *r, gidx n, const struct request *request);

void recorder_free(struct recorder *r);

#endif
