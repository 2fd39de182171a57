/* SPDX-License-Identifier: BSD-3-Clause
 * How often the atoms of a dictionary are used, read from the supports.h5 in the folder that has
 * the dictionary's file.
 *
 * Floor: io.  Not collective. */
#ifndef IO_DENSITY_H
#define IO_DENSITY_H

#include "base/memory.h"

/* What a supports.h5 says about its atoms. */
struct density {
  gidx *rows;          /* [k] number of rows in whose support the atom is; in the arena; NULL: not
                        * known */
  uint64_t dictionary; /* hash of the dictionary that the rows were encoded with; 0: the file does
                        * not give it */
};
/* d->rows <- NULL if there is no such file, or if it is incomplete, has another number of atoms, or
 * was written by another program.  ERR_IO, ERR_INPUT: the file exists and cannot be read. */
int density_open(const char *dictionary_file, idx k, struct arena *arena, struct density *d);

#endif
