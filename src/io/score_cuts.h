/* SPDX-License-Identifier: BSD-3-Clause
 * The group /cut of a supports.h5: by which scores of all rows they were chosen (N.58).
 *
 * Floor: io.  Not collective. */
#ifndef IO_SCORE_CUTS_H
#define IO_SCORE_CUTS_H

#include "io/h5/h5.h"
#include "model/cuts.h"

int cuts_write(const struct h5_file *f, const struct score_cuts *cuts);
/* *cuts <- those of a file; n = 0: it has none.  ERR_INPUT. */
int cuts_read(const struct h5_file *f, struct score_cuts *cuts);

/* Were these rows, by their hash, the ones that were counted?  cuts may be NULL.  ERR_INPUT. */
int cuts_rows_check(const struct score_cuts *cuts, uint64_t rows, const char *file);

#endif
