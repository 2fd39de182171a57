/* SPDX-License-Identifier: BSD-3-Clause
 * The group /cut of a supports.h5: the cuts, thresholds of scores that were computed from all rows,
 * by which the supports were chosen (N.58; model/cuts.h).
 *
 * Floor: io.  Not collective. */
#ifndef IO_SCORE_CUTS_H
#define IO_SCORE_CUTS_H

#include "io/h5/h5.h"
#include "model/cuts.h"

int cuts_write(const struct h5_file *f, const struct score_cuts *cuts);
/* *cuts <- the cuts of a file; cuts->n is 0 if it has none.  ERR_INPUT. */
int cuts_read(const struct h5_file *f, struct score_cuts *cuts);

/* ERR_INPUT: the cuts were computed from rows with another hash than `rows`.  cuts may be NULL. */
int cuts_rows_check(const struct score_cuts *cuts, uint64_t rows, const char *file);

#endif
