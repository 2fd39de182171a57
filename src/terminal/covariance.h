/* SPDX-License-Identifier: BSD-3-Clause
 * The covariance of the frames: blocks of phi S^-1, for atoms and for the strongest pairs of atoms.
 *
 * Floor: terminal; included by src/terminal only.  Not collective: rank 0 alone works. */
#ifndef TERMINAL_COVARIANCE_H
#define TERMINAL_COVARIANCE_H

#include "terminal/terminal_impl.h"

/* Make the blocks of phi S^-1 in the result.  w->s must hold Z = L^-1, with S = LL'. */
int terminal_covariance(struct terminal *w);

/* Bytes of a panel of S^-1 on the device side. */
gidx terminal_panel_bytes(const struct terminal *w);

/* Allocate the blocks in the result's arena; a dry arena only counts them.  terminal_covariance()
 * calls it. */
int terminal_covariance_alloc(struct terminal *w);

#endif
