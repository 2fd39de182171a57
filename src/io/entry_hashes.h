/* SPDX-License-Identifier: BSD-3-Clause
 * Hash the arrays of supports' entries while the entries are checked, and compare the hashes with
 * the file's.  One thread hashes one array.  While one piece of the entries is checked, the piece
 * before is hashed from memory.
 *
 * Floor: io; included by the check of supports and by verify.c. */
#ifndef IO_ENTRY_HASHES_H
#define IO_ENTRY_HASHES_H

#include "io/check.h"

enum { ENTRY_ARRAYS = 4 }; /* indices, data, score, codes, in this order */

/* Is this dataset one of the ENTRY_ARRAYS? */
int entry_hashes_have(const char *path);

struct entry_hashes {
  const struct verify *v;
  int count;           /* arrays that exist; 0: verify.c hashes them */
  gidx first, entries; /* the piece to be hashed; entries 0: none yet */
  struct entry_hash {
    struct h5_array array;
    int which;          /* its index in the order of ENTRY_ARRAYS */
    const void *values; /* [entries] of the piece */
    int status;
    char message[512];
  } of[ENTRY_ARRAYS];
};
/* Open the arrays that verify.c left to the check of supports.  entry_hashes_close() is safe on a
 * zeroed struct. */
int entry_hashes_open(struct entry_hashes *h, const struct verify *v);
void entry_hashes_close(struct entry_hashes *h);

/* Hash the piece of of[i], i < count.  Several threads may call this at once, each for another
 * array. */
void entry_hashes_add(struct entry_hashes *h, gidx i);
/* Return the first failure of entry_hashes_add() so far, or OK. */
int entry_hashes_status(const struct entry_hashes *h);
/* Entries first .. first + entries - 1 are the next piece.  values[i] are the values of the i-th of
 * the ENTRY_ARRAYS as they were read.  They must stay valid until entry_hashes_add() has returned
 * for all arrays. */
void entry_hashes_next(struct entry_hashes *h, gidx first, gidx entries,
                       const void *const values[ENTRY_ARRAYS]);
/* ERR_INPUT: an array is not what was written. */
int entry_hashes_end(struct entry_hashes *h);

#endif
