/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of rows by an encoder (N.24, N.55), as `sagitta encode --encoder` makes them.
 *
 * Floor: library; included by src/library only.  Not collective. */
#ifndef LIBRARY_ENCODED_H
#define LIBRARY_ENCODED_H

#include "library/library_impl.h"

/* Set h->encoder from the options, and check it.  ERR_USAGE, ERR_INPUT, ERR_MEMORY. */
int encoded_check(struct sagitta *h);
/* Put the encoder's matrix on the device.  The encoder `active` has none: for it encoded_alloc()
 * puts the atoms there. */
int encoded_put(struct sagitta *h);

/* Allocate for h->rows rows.  ERR_MEMORY.  encoded_free() is also safe if nothing was allocated. */
int encoded_alloc(struct sagitta *h);
void encoded_free(struct sagitta *h);

/* h->piece and h->start <- the results of n rows, given in h->x and h->raw; h->lengths, too, unless
 * the encoder is active.  first: the number of the first row in the call.  ERR_INPUT: a score is
 * not finite, or codes are to be solved and a row has too many atoms. */
int encoded_encode(struct sagitta *h, gidx first, idx n);

#endif
