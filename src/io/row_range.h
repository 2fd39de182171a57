/* SPDX-License-Identifier: BSD-3-Clause
 * The option --row-range: the rows that a job encodes.
 *
 * Floor: io. */
#ifndef IO_ROW_RANGE_H
#define IO_ROW_RANGE_H

#include "model/rows.h"

/* *first, *end <- the rows of the text FIRST:END, or of FIRST: for all rows up to the end.  Sums
 * are made per sum block of 4,096 rows (N.0), and a part must have whole sum blocks.  ERR_USAGE:
 * the range would cut a sum block; the message names the nearest valid range.  An END beyond the
 * last row stands for the end if it is a multiple of the sum block, so that all tasks of a job
 * array may have the same length.  If both numbers are beyond the last row, the range is empty
 * (*first == *end), since an array may have spare tasks. */
int row_range_parse(const char *text, const struct row_source *rows, gidx *first, gidx *end);

#endif
