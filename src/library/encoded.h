/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of rows by an encoder (N.24, N.55), as `sagitta encode --encoder` makes them.
 *
 * Floor: library; included by src/library only.  Not collective. */
#ifndef LIBRARY_ENCODED_H
#define LIBRARY_ENCODED_H

#include "library/library_impl.h"

/* h->encoder <- that of the options.  ERR_USAGE, ERR_INPUT. */
int encoded_check(struct sagitta *h);
/* Its matrix to the device. */
int encoded_put(struct sagitta *h);

/* Memory of h->rows rows.  ERR_MEMORY.  encoded_free() is safe without it. */
int encoded_alloc(struct sagitta *h);
void encoded_free(struct sagitta *h);

/* h->piece, h->lengths and h->start <- those of n rows of h->x and h->raw, whose first is this one
 * of the call.  ERR_INPUT: a score is not finite, or a row has too many atoms to be solved. */
int encoded_encode(struct sagitta *h, gidx first, idx n);

#endif
