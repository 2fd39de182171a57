/* SPDX-License-Identifier: BSD-3-Clause
 * Choices of active atoms, block of atoms after block of atoms (N.59).  Each block describes the
 * residuals that the blocks before it leave of the rows.
 *
 * Floor: encode.  Not collective: a rank's own rows, on its device.  The caller sets a->is_nested
 * before active_open().  ERR_INTERNAL when there is no room for the entries of a block. */
#ifndef ENCODE_ACTIVE_NESTED_H
#define ENCODE_ACTIVE_NESTED_H

#include "encode/active.h"
#include "model/find_nested.h"

struct active_blocks {
  const struct find_blocks *blocks; /* of all a->k atoms */
  int looks;
  const float *threshold; /* [1 + looks] */
  real rho;
};
/* One pass over rows first .. first + n - 1 of x[..][p], which follows `look` passes that were
 * kept.  *found <- how many atoms it chooses.  active_nested_keep() makes this pass the one that
 * the next pass begins with. */
int active_nested_pass(struct active *a, const struct buffer *x, gidx first, idx n,
                       const struct active_blocks *by, int look, gidx *found);
void active_nested_keep(struct active *a);
/* Make all passes.  Then solve together the codes of all atoms that the final pass chose. */
int active_nested(struct active *a, const struct buffer *x, gidx first, idx n,
                  const struct active_blocks *by);

#endif
