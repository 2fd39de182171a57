/* SPDX-License-Identifier: BSD-3-Clause
 * The steps of a ledger once more: the recorded rows of requests together as they were, and whether
 * their supports, scores and codes are what the ledger says.
 *
 * Floor: serve. */
#ifndef SERVE_REPLAY_H
#define SERVE_REPLAY_H

#include "encode/encode.h"
#include "model/ledger.h"

struct replay_task {
  const struct encode_task *encode; /* its block is the rows of a step; borrowed, as are the next */
  const struct ledger *ledger;      /* which ledger_check() has passed */
  const struct row_source *rows;    /* of all requests of the ledger, one after another */
  uint64_t dictionary;              /* the hash that it has to have */
};
struct replay_result {
  gidx steps, requests; /* with results */
  gidx differ;          /* of these */
  gidx first;           /* request that differs; -1: none */
};

/* ERR_INPUT: another dictionary, or rows that are not those of the ledger. */
int replay_run(const struct replay_task *task, struct comm *c, struct replay_result *result);

#endif
