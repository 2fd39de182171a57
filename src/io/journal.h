/* SPDX-License-Identifier: BSD-3-Clause
 * What a growing result has reached, in a file beside it: NAME.<16 digits>.journal, that of
 * NAME.<the same digits>.growing.
 *
 * Floor: io.  Used by rank 0 alone; not collective.
 *
 * A head says how many chunks the arrays have, and how large a record is.  Then there are the
 * hashes of all chunks, those of array after array, and two places for records, used in turn.  A
 * record says of the first rows all that is needed to continue behind them; it has a number, and
 * SHA-256 of itself and of the hashes of the chunks of its rows.  Of those that are whole the one
 * with the higher number counts: so a record that was being written when the process or the machine
 * ended leaves the one before, and needs no order on the disk.  The file is no larger after many
 * records than after one.  It has no host and no time. */
#ifndef IO_JOURNAL_H
#define IO_JOURNAL_H

#include "base/sha256.h"
#include "base/types.h"

#define GROWING_END ".growing"
#define JOURNAL_END ".journal"

enum { JOURNAL_VERSION = 2, JOURNAL_ARRAYS = 4 };
struct journal_head {
  char magic[16];
  gidx version, arrays, most; /* most: bytes of a record */
  gidx chunks[JOURNAL_ARRAYS], chunk_rows[JOURNAL_ARRAYS];
  unsigned char hash[SHA256_BYTES]; /* of what is before it */
};
struct journal {
  char name[4096];
  int file; /* 0: not open */
  struct journal_head head;
  gidx number, rows;     /* of the last record, and how many rows it says are done; 0: none */
  unsigned char *record; /* [bytes]; owned */
  gidx bytes;
};

/* Make the file, of records of up to `most` bytes.  ERR_CREATE. */
int journal_create(struct journal *j, const char *name, int arrays, const gidx *chunks,
                   const gidx *chunk_rows, gidx most);
/* Open one that is there, with its last record.  ERR_INPUT: it is none, or none is whole. */
int journal_open(struct journal *j, const char *name);
/* The same of one of several jobs (ranges.h), which is empty until something is recorded: make it
 * if it is missing, or else, without `makes`, leave it; lock it, for as long as it is open, and
 * take its last record, number 0: there is none that is whole.  *error <- why it is not this job's:
 * EWOULDBLOCK: another has it locked, ENOENT: it is gone; 0: it is, as far as the file system knows
 * locks, which *has_lock says.  journal_create() then makes what is open. */
int journal_claim(struct journal *j, const char *name, int makes, int *error, int *has_lock);
/* Let it have no record, on the disk too. */
int journal_clear(struct journal *j);
/* leaves[] <- the hashes of the chunks of array a that the last record has. */
int journal_leaves(const struct journal *j, int a, unsigned char *leaves);
/* The next record, of the first `rows` rows; leaves[a]: the hashes of all chunks of array a, of
 * which those of these rows are known.  It is on the disk when this returns.  ERR_IO. */
int journal_add(struct journal *j, gidx rows, const unsigned char *const *leaves,
                const void *record, gidx bytes);
/* Give back what *j holds; safe on a zeroed struct. */
void journal_close(struct journal *j);

/* name[4096] <- the journal of a growing file of the result at `path`, "": there is none.  One that
 * has lost its growing file, as of a process that ended between the two, is removed.  ERR_CREATE: a
 * growing file has lost its journal, or there are several.  ERR_IO: it is not known.  Whoever calls
 * it has claimed the path (place.h). */
int journal_find(const char *path, char *name);
/* Is this the name of one; and that of its growing file.  Is it that of a growing file, and the
 * name of its journal. */
int journal_is(const char *name);
void journal_growing(const char *name, char *growing);
int journal_is_growing(const char *name);
void journal_of(const char *growing, char *name);
/* Remove both. */
void journal_discard(const char *name);

#endif
