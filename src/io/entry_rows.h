/* SPDX-License-Identifier: BSD-3-Clause
 * A fast test whether all entries of a row are valid, several entries at a time.  Nearly every row
 * passes.  For a row that fails, the check of supports finds the entry and names the error.
 *
 * Floor: io; included by the check of supports and a test. */
#ifndef IO_ENTRY_ROWS_H
#define IO_ENTRY_ROWS_H

#include "base/types.h"

/* The order of the entries of a row: selection order (N.2) with ties of scores in the order of
 * atoms, selection order with ties in any order, or ascending atoms. */
enum entry_order { ORDER_SCORES_ATOMS, ORDER_SCORES, ORDER_ATOMS };

struct entry_rules {
  idx k; /* every atom is below k */
  enum entry_order order;
  int nonnegative;       /* values and scores are at least 0 */
  int same;              /* each value has the same bits as its score */
  const int32_t *begins; /* [positions of a row] -1: a routing round begins here (N.3r); 0: none
                          * begins here; scores are in order inside a round */
};

/* Returns 1 if the n entries of a row keep the rules; then *nonzero grows by the number of values
 * that are not 0.  Returns 0 otherwise; also, without a test, if n is below five. */
int entry_row_is_plain(const struct entry_rules *r, const idx *atoms, const float *values,
                       const float *scores, gidx n, gidx *nonzero);

#endif
