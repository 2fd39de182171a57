/* SPDX-License-Identifier: BSD-3-Clause
 * How well another fit found the atoms of a dictionary: the pairs of a comparison.h5 (N.22p).
 *
 * Floor: io.  Not collective. */
#ifndef IO_STABILITY_H
#define IO_STABILITY_H

#include "base/memory.h"

/* cosine[k] <- of each atom of the first dictionary, in the arena; 0 where it has no pair.
 * *dictionary <- the hash of that dictionary.  ERR_INPUT: there are no pairs in the file, or they
 * are of another number of atoms than k. */
int stability_read(const char *name, idx k, struct arena *arena, float **cosine,
                   uint64_t *dictionary);

#endif
