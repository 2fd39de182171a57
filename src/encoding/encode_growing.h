/* SPDX-License-Identifier: BSD-3-Clause
 * A result of encode and route that grows in a file of its own, NAME.<digits>.growing.  A journal
 * beside it (io/journal.h) has records of the rows that are done; a stop and a save add a record.
 * --resume continues after the last record in the same file, on any number of ranks, and copies
 * nothing.
 *
 * Floor: encoding.  On rank 0, unless a comment says otherwise; not collective.
 *
 * A result grows if all ranks write it, if it is a range (--join), or if an earlier run began it in
 * this way.  The shape says where each chunk lies (io/h5/slabs.h).  The file becomes a valid HDF5
 * file only when its last row is written.  So no reader takes missing rows for zeros, and a kill
 * cannot leave HDF5 structures half changed. */
#ifndef ENCODING_ENCODE_GROWING_H
#define ENCODING_ENCODE_GROWING_H

#include "encoding/encode_files.h"

/* f->before <- the last record of the journal at `name`, which an earlier run left.  ERR_INPUT:
 * there is no record. */
int encode_growing_before(struct encode_files *f, const char *name);
/* Begin the file, or open the one that an earlier run left. */
int encode_growing_begin(struct encode_files *f);
/* For a range that is done: check that its first and last chunks in the growing file have the
 * recorded hashes.  ERR_INPUT: they do not. */
int encode_growing_confirm(struct encode_files *f);
/* Record the rows of `result`, which covers all rows so far and was checked (io/supports_ranks.h).
 * The record is in the journal when this returns.  encode_growing_reopen(): f->before <- that
 * record. */
int encode_growing_record(struct encode_files *f, const struct encode_result *result);
int encode_growing_reopen(struct encode_files *f);
/* Broadcast the file's name from rank 0.  Collective. */
int encode_growing_name(struct encode_files *f);
/* After all rows are written: make the file an HDF5 file. */
int encode_growing_end(struct encode_files *f);
/* After that file is published: remove its journal. */
int encode_growing_published(struct encode_files *f);
/* Any rank. */
void encode_growing_free(struct encode_files *f);

#endif
