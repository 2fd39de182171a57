/* SPDX-License-Identifier: BSD-3-Clause
 * The journal: a file that records how far a growing result is complete, so that a stopped job can
 * continue.  NAME.<16 digits>.journal belongs to NAME.<the same digits>.growing, the result while
 * it is written.
 *
 * Floor: io.  Used by rank 0 alone; not collective.
 *
 * The file begins with a head: the number of chunks of each array, and the size of a record.  Then
 * come the hashes of all chunks, array after array, and two places for records, used alternately.
 * A record has the data that a job needs to continue after the rows that are done.  It has a
 * number, and a SHA-256 of itself and of the hashes of the chunks of its rows.  The valid record
 * with the higher number counts.  If the process or the machine stops while a record is written,
 * the SHA-256 of this record is wrong, and the earlier record is still valid.  So the order in
 * which blocks reach the disk does not matter.  Each part of the file has a fixed place.  The file
 * contains no host name and no time. */
#ifndef IO_JOURNAL_H
#define IO_JOURNAL_H

#include "base/sha256.h"
#include "base/types.h"

#define GROWING_END ".growing"
#define JOURNAL_END ".journal"

enum { JOURNAL_VERSION = 2, JOURNAL_ARRAYS = 4 };
struct journal_head {
  char magic[16];
  gidx version, arrays, most; /* most: the largest size of a record in bytes */
  gidx id;                    /* id of the growing file of several jobs (ranges.h); 0: one job
                               * writes the growing file */
  gidx chunks[JOURNAL_ARRAYS], chunk_rows[JOURNAL_ARRAYS];
  unsigned char hash[SHA256_BYTES]; /* SHA-256 of the members above */
};
struct journal {
  char name[4096];
  int file; /* 0: not open */
  struct journal_head head;
  gidx number, rows;     /* number of the last record, and the number of rows that were done when it
                          * was written; 0: no record */
  unsigned char *record; /* [bytes]; owned */
  gidx bytes;
};

/* Make the file, for records of up to `most` bytes, with the id in j->head.  ERR_CREATE. */
int journal_create(struct journal *j, const char *name, int arrays, const gidx *chunks,
                   const gidx *chunk_rows, gidx most);
/* Open a journal, and read its last record.  ERR_INPUT: it is not a journal, or no record is
 * valid. */
int journal_open(struct journal *j, const char *name);
/* Open and lock the journal of one of several jobs (ranges.h), and read its last record.  The file
 * is empty until something is recorded; j->number 0: no record is valid.  With `makes` a missing
 * journal is made.  The lock lasts while the journal is open.  *error <- 0: this job has the
 * journal; EWOULDBLOCK: another job holds the lock; ENOENT: the journal does not exist.  *has_lock
 * <- 0 if the file system has no locks, so that two jobs may hold the journal.  A following
 * journal_create() writes the head into the open file. */
int journal_claim(struct journal *j, const char *name, int makes, int *error, int *has_lock);
/* Does the open journal still have its name? */
int journal_is_current(const struct journal *j);
/* Make the file empty, on the disk too. */
int journal_clear(struct journal *j);
/* leaves[] <- the hashes of the chunks of array a that are in the last record. */
int journal_leaves(const struct journal *j, int a, unsigned char *leaves);
/* Write the next record, of the first `rows` rows.  leaves[a]: the hashes of all chunks of array a;
 * only the hashes of these rows' chunks are used.  The record is on the disk when this function
 * returns.  ERR_IO. */
int journal_add(struct journal *j, gidx rows, const unsigned char *const *leaves,
                const void *record, gidx bytes);
/* Release what *j holds; safe on a zeroed struct. */
void journal_close(struct journal *j);

/* name[4096] <- the journal of the growing file for the result at `path`; "": there is none.  A
 * journal without its growing file is removed; a process that ends between removing the two leaves
 * such a journal.  ERR_CREATE: a growing file of a single job has no journal, or there are several
 * journals.  ERR_IO: the folder cannot be read.  The caller has claimed the path (place.h). */
int journal_find(const char *path, char *name);
/* Functions of names.  journal_is(): is it the name of a journal?  journal_growing(): growing <-
 * the name of a journal's growing file.  journal_is_growing(): is it the name of a growing file?
 * journal_of(): name <- the name of a growing file's journal. */
int journal_is(const char *name);
void journal_growing(const char *name, char *growing);
int journal_is_growing(const char *name);
void journal_of(const char *growing, char *name);
/* Remove a journal and its growing file. */
void journal_discard(const char *name);

#endif
