/* SPDX-License-Identifier: BSD-3-Clause
 * Whether all entries of a row are as the file says, several entries at a time: of nearly every row
 * they are.  Of one that is not, the check of supports finds the entry, and says what is wrong.
 *
 * Floor: io; included by the check of supports. */
#ifndef IO_ENTRY_ROWS_H
#define IO_ENTRY_ROWS_H

#include "base/types.h"

/* Entries are in selection order (N.2), which by scores of equal size looks at atoms or not, or
 * their atoms ascend. */
enum entry_order { ORDER_SCORES_ATOMS, ORDER_SCORES, ORDER_ATOMS };

struct entry_rules {
  idx k; /* atoms are below it */
  enum entry_order order;
  int nonnegative;       /* values and scores */
  int same;              /* values are the scores */
  const int32_t *begins; /* [positions of a row] -1 where a round begins (N.3r), whose scores are in
                          * order, else 0 */
};

/* Do n entries, those of a row, keep the rules?  Then *nonzero += values that are not 0.  0 also of
 * less than five entries, which are not looked at. */
int entry_row_is_plain(const struct entry_rules *r, const idx *atoms, const float *values,
                       const float *scores, gidx n, gidx *nonzero);

#endif
