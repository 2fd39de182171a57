/* SPDX-License-Identifier: BSD-3-Clause
 * How well another fit found the atoms of a dictionary: read the pairs of a comparison.h5 (N.22p).
 *
 * Floor: io.  Not collective. */
#ifndef IO_STABILITY_H
#define IO_STABILITY_H

#include "base/memory.h"

/* *cosine <- [k], in the arena: for each atom of the first dictionary, its cosine with the atom
 * that is paired with it; 0 if it has no pair. *dictionary <- the hash of that dictionary.
 * ERR_INPUT: the file has no pairs, or its number of atoms is not k. */
int stability_read(const char *name, idx k, struct arena *arena, float **cosine,
                   uint64_t *dictionary);

#endif
