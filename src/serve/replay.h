/* SPDX-License-Identifier: BSD-3-Clause
 * Compute the steps of a ledger again, each with the rows of requests that it had, and compare
 * supports, scores and codes with the ledger.
 *
 * Floor: serve. */
#ifndef SERVE_REPLAY_H
#define SERVE_REPLAY_H

#include "encode/encode.h"
#include "model/ledger.h"

struct replay_task {
  const struct encode_task *encode; /* block: rows of a step; borrowed, as are the next two */
  const struct ledger *ledger;      /* ledger_check() has accepted it */
  const struct row_source *rows;    /* of all requests of the ledger, one after another */
  uint64_t dictionary;              /* the expected hash */
};
struct replay_result {
  gidx steps, requests; /* with results */
  gidx differ;          /* requests that differ */
  gidx first;           /* the first request that differs; -1: none */
};

/* ERR_INPUT: another dictionary, or rows that are not those of the ledger. */
int replay_run(const struct replay_task *task, struct comm *c, struct replay_result *result);

#endif
