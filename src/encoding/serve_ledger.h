/* SPDX-License-Identifier: BSD-3-Clause
 * Write the ledger of `sagitta serve` to files, and replay it (--replay).
 *
 * Floor: encoding.  On rank 0, except serve_replay(). */
#ifndef ENCODING_SERVE_LEDGER_H
#define ENCODING_SERVE_LEDGER_H

#include "io/place.h"
#include "job/run.h"
#include "serve/serve.h"

struct serve_ledger {
  struct output_path place; /* of ledger.h5 */
  char rows[4096];          /* live.h5, beside it; empty: rows are not recorded */
};

/* Claim the files.  ERR_CREATE. */
int serve_ledger_claim(struct serve_ledger *l, const char *folder, int has_rows, int force);
/* Write and publish the record of a server.  begun: the facts with which the server began;
 * identity: of a job of encode with the same options. */
int serve_ledger_write(struct serve_ledger *l, const struct run *run, const char *identity,
                       const struct encode_task *encode, const struct serve_facts *begun,
                       const struct serve_record *record);

/* Compute the recorded rows of a folder again, in the recorded steps.  ERR_ANSWER: a reply differs.
 * Sets encode->block to the rows per step of the ledger.  Collective. */
int serve_replay(struct run *run, const char *folder, struct encode_task *encode,
                 const char *identity);

#endif
