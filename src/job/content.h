/* SPDX-License-Identifier: BSD-3-Clause
 * Hashes of inputs that are read for nothing else: is a result that is there of these?
 *
 * Floor: job. */
#ifndef JOB_CONTENT_H
#define JOB_CONTENT_H

#include "comm/comm.h"
#include "model/dictionary.h"
#include "model/rows.h"

/* *terms, on every rank <- those of all rows of a source (model/identity.h), the first of which is
 * row `first` of the whole; ranks read a share each.  ERR_INPUT when a value is not finite.
 * Collective. */
int rows_content(struct comm *c, const struct row_source *rows, gidx first, uint64_t *terms);

/* The same of atoms. */
int atoms_content(struct comm *c, const struct atom_source *atoms, uint64_t *terms);

#endif
