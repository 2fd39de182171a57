/* SPDX-License-Identifier: BSD-3-Clause
 * A result of encode and route that grows in its own file, NAME.<digits>.growing once something is
 * recorded of it (io/journal.h): a stop and a save write a record, --resume goes on behind the last
 * one in the same file, on any number of ranks, and nothing is copied.
 *
 * Floor: encoding.  On rank 0, unless a comment says otherwise; not collective.
 *
 * Results that all ranks write grow so, and any that was begun so.  Chunks lie where their shape
 * says (io/h5/slabs.h), and it is no file of HDF5's before its last row is written: so nobody takes
 * what is missing for zeros, and there is nothing in it that a kill could leave half changed. */
#ifndef ENCODING_ENCODE_GROWING_H
#define ENCODING_ENCODE_GROWING_H

#include "encoding/encode_files.h"

/* f->before <- what the journal at `name` says, which an earlier run left; ERR_INPUT: nothing. */
int encode_growing_before(struct encode_files *f, const char *name);
/* Begin the file, or open the one that was left. */
int encode_growing_begin(struct encode_files *f);
/* The rows of a result, which is that of all rows so far, were checked (io/supports_ranks.h): they
 * are recorded when this returns; and let f->before be that. */
int encode_growing_record(struct encode_files *f, const struct encode_result *result);
int encode_growing_reopen(struct encode_files *f);
/* Other ranks know the file's name.  Collective. */
int encode_growing_name(struct encode_files *f);
/* All rows are written: it becomes a file of HDF5's; then that is published. */
int encode_growing_end(struct encode_files *f);
int encode_growing_published(struct encode_files *f);
/* Any rank. */
void encode_growing_free(struct encode_files *f);

#endif
