/* SPDX-License-Identifier: BSD-3-Clause
 * Choices of active atoms block after block (N.59): each by what the blocks before leave of a row.
 *
 * Floor: encode.  Not collective: a rank's own rows, on its device; a->is_nested was set before
 * active_open().  ERR_INTERNAL where there is no room for a block's entries. */
#ifndef ENCODE_ACTIVE_NESTED_H
#define ENCODE_ACTIVE_NESTED_H

#include "encode/active.h"
#include "model/find_nested.h"

struct active_blocks {
  const struct find_blocks *blocks; /* of all atoms, a->k of them */
  int looks;
  const float *threshold; /* [1 + looks] */
  real rho;
};
/* One pass over rows first .. first + n - 1 of x[..][p], after `look` passes that were kept; *found
 * <- the atoms that it chooses.  active_nested_keep() keeps it. */
int active_nested_pass(struct active *a, const struct buffer *x, gidx first, idx n,
                       const struct active_blocks *by, int look, gidx *found);
void active_nested_keep(struct active *a);
/* All passes; then the codes of the last pass's atoms, solved together. */
int active_nested(struct active *a, const struct buffer *x, gidx first, idx n,
                  const struct active_blocks *by);

#endif
