/* SPDX-License-Identifier: BSD-3-Clause
 * The memory of an encode job: what is allocated before the first block and held until the end.
 *
 * Floor: encode; included by src/encode only.  Not collective.  encode.h has the forecasts. */
#ifndef ENCODE_LAYOUT_H
#define ENCODE_LAYOUT_H

#include "encode/encode_impl.h"

/* Allocate all that the job holds until its end, except the dictionary; *m <- how much that is.
 * With a dry device and dry arenas nothing is allocated, and *m is the same, or larger
 * (rows_alloc() in layout.c). */
int encode_alloc(struct encode *e, struct encode_memory *m);

/* Bytes held so far in arenas and buffers.  Of the two sides of a GPU's buffers only the larger
 * total counts. */
gidx encode_bytes(const struct encode *e);

/* Free the buffers.  Call it before the device is closed. */
void buffers_free(struct encode *e);

#endif
