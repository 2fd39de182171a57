/* SPDX-License-Identifier: BSD-3-Clause
 * Supports and codes of rows by rounds of routing (N.3r), as `sagitta encode --dictionary` makes
 * them.
 *
 * Floor: library; included by src/library only.  Not collective. */
#ifndef LIBRARY_ROUTED_H
#define LIBRARY_ROUTED_H

#include "library/library_impl.h"

/* Allocate for h->rows rows.  ERR_MEMORY.  routed_free() is also safe if nothing was allocated. */
int routed_alloc(struct sagitta *h);
void routed_free(struct sagitta *h);

/* Solve the codes of the first `end` atoms of n rows in h->x; an earlier call has solved the codes
 * of the first `begin` atoms.  If end is top_s, part->codes <- the codes.  Otherwise h->residual <-
 * the rows minus the atoms times their codes. */
struct routed_part {
  idx n, begin, end;
  const struct buffer *slot; /* [n][s] atoms */
  struct buffer *codes;      /* [n][s] */
};
int routed_solve(struct sagitta *h, const struct routed_part *part);

/* h->piece and h->start <- the results of n rows in h->x.  first: the number of the first row in
 * the call.  ERR_INPUT: a score is not finite. */
int routed_encode(struct sagitta *h, gidx first, idx n);

#endif
