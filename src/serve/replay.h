/* SPDX-License-Identifier: BSD-3-Clause
 * Compute the steps of a ledger again, each with the rows of requests that it had.  The hashes of
 * supports, scores and codes of each request are compared with the ledger.
 *
 * Floor: serve. */
#ifndef SERVE_REPLAY_H
#define SERVE_REPLAY_H

#include "encode/encode.h"
#include "model/ledger.h"

struct replay_task {
  const struct encode_task *encode; /* block: rows of a step; borrowed, as are the next two */
  const struct ledger *ledger;      /* ledger_check() has accepted it */
  const struct row_source *rows;    /* the rows of all requests of the ledger, in order */
  uint64_t dictionary;              /* the hash that the dictionary must have */
};
struct replay_result {  /* on rank 0 */
  gidx steps, requests; /* requests: those with results */
  gidx differ;          /* requests whose hashes differ from the ledger's */
  gidx first;           /* the first of these requests; -1: none */
};

/* ERR_INPUT: the dictionary has another hash, or the ledger has another number of rows.
 * Collective. */
int replay_run(const struct replay_task *task, struct comm *c, struct replay_result *result);

#endif
