/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of rows by rounds of routing (N.3r), as `sagitta encode --dictionary` makes them.
 *
 * Floor: library; included by src/library only.  Not collective. */
#ifndef LIBRARY_ROUTED_H
#define LIBRARY_ROUTED_H

#include "library/library_impl.h"

/* Allocate for h->rows rows.  ERR_MEMORY.  routed_free() is safe without it. */
int routed_alloc(struct sagitta *h);
void routed_free(struct sagitta *h);

/* Solve entries 0 .. end - 1 of n rows of h->x; entries before begin are solved already.  If end is
 * top_s, codes are written; otherwise h->residual <- what the entries leave of the rows. */
struct routed_part {
  idx n, begin, end;
  const struct buffer *slot; /* [n][s] atoms */
  struct buffer *codes;      /* [n][s] */
};
int routed_solve(struct sagitta *h, const struct routed_part *part);

/* h->piece and h->start <- the results of n rows of h->x; first: the number of the first in the
 * call.  ERR_INPUT: a score is not finite. */
int routed_encode(struct sagitta *h, gidx first, idx n);

#endif
