/* SPDX-License-Identifier: BSD-3-Clause
 * Hashes of the arrays of supports' entries, compared while the entries are checked: one array a
 * thread, piece after piece, from what was read for the check of the piece before.
 *
 * Floor: io; included by the check of supports and by verify.c. */
#ifndef IO_ENTRY_HASHES_H
#define IO_ENTRY_HASHES_H

#include "io/check.h"

enum { ENTRY_ARRAYS = 4 }; /* indices, data, score, codes */

/* Is this dataset such an array? */
int entry_hashes_have(const char *path);

struct entry_hashes {
  const struct verify *v;
  int count;           /* arrays that are there; 0: verify.c hashes them itself */
  gidx first, entries; /* of the piece that is to be hashed; entries 0: there is none yet */
  struct entry_hash {
    struct h5_array array;
    int which;          /* of ENTRY_ARRAYS */
    const void *values; /* [entries] of the piece */
    int status;
    char message[512];
  } of[ENTRY_ARRAYS];
};
/* Open those that verify.c left to the check.  entry_hashes_close() is safe on a zeroed struct. */
int entry_hashes_open(struct entry_hashes *h, const struct verify *v);
void entry_hashes_close(struct entry_hashes *h);

/* Hash the piece of array number i < count; any threads may do so at once. */
void entry_hashes_add(struct entry_hashes *h, gidx i);
/* The first failure so far. */
int entry_hashes_status(const struct entry_hashes *h);
/* Entries first .. first + entries - 1 are the next piece; values: of each of ENTRY_ARRAYS, as they
 * were read, until entry_hashes_add() has been called for all. */
void entry_hashes_next(struct entry_hashes *h, gidx first, gidx entries,
                       const void *const values[ENTRY_ARRAYS]);
/* ERR_INPUT: an array is not what was written. */
int entry_hashes_end(struct entry_hashes *h);

#endif
