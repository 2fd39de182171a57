/* SPDX-License-Identifier: BSD-3-Clause
 * Hashes of inputs, which tell whether an existing result was made from them.
 *
 * Floor: encode. */
#ifndef ENCODE_CONTENT_H
#define ENCODE_CONTENT_H

#include "comm/comm.h"
#include "model/dictionary.h"
#include "model/rows.h"

/* *terms, on every rank <- the sum of the hash terms of all rows of a source (model/identity.h),
 * whose first row is row `first` of the whole; each rank reads a share.  ERR_INPUT when a value is
 * not finite.  Collective. */
int rows_content(struct comm *c, const struct row_source *rows, gidx first, uint64_t *terms);

/* The same for atoms. */
int atoms_content(struct comm *c, const struct atom_source *atoms, uint64_t *terms);

#endif
