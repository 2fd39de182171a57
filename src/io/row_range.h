/* SPDX-License-Identifier: BSD-3-Clause
 * Which rows of all a job encodes: --row-range.
 *
 * Floor: io. */
#ifndef IO_ROW_RANGE_H
#define IO_ROW_RANGE_H

#include "model/rows.h"

/* *first, *end <- the rows of FIRST:END, or FIRST: up to the end.  Sums go by sum blocks (N.0), of
 * which a part has whole ones: ERR_USAGE names the nearest range of these.  A multiple of them
 * beyond the last row is the end, so that all jobs of an array may have the same length; where both
 * are beyond it the range has no rows, *first == *end, since an array may have tasks to spare. */
int row_range_parse(const char *text, const struct row_source *rows, gidx *first, gidx *end);

#endif
