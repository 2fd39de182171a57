/* SPDX-License-Identifier: BSD-3-Clause
 * How often the atoms of a dictionary are used: the supports.h5 that lies beside its file.
 *
 * Floor: io.  Not collective. */
#ifndef IO_DENSITY_H
#define IO_DENSITY_H

#include "base/memory.h"

/* What a supports.h5 says of the atoms that it names. */
struct density {
  gidx *rows;          /* [k] rows in whose support the atom is; of the arena; NULL: not known */
  uint64_t dictionary; /* hash of the dictionary that the rows were encoded with; 0: not said */
};
/* Without such a file, or where that is not whole, of another number of atoms, or of another
 * program, rows is NULL.  ERR_IO, ERR_INPUT: it is there and cannot be read. */
int density_open(const char *dictionary_file, idx k, struct arena *arena, struct density *d);

#endif
