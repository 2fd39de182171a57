/* SPDX-License-Identifier: BSD-3-Clause
 * Hashes of rows that are read for nothing else: is a result that is there of these?
 *
 * Floor: cli. */
#ifndef CLI_CONTENT_H
#define CLI_CONTENT_H

#include "comm/comm.h"
#include "model/rows.h"

/* *terms, on every rank <- those of all rows of a source (model/identity.h); ranks read a share
 * each.  ERR_INPUT: a value is not finite.  Collective; the same status on every rank. */
int rows_content(struct comm *c, const struct row_source *rows, uint64_t *terms);

#endif
