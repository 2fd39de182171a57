/* SPDX-License-Identifier: BSD-3-Clause
 * supports.h5, written by all ranks: each writes the chunks of its rows where slabs.h says that
 * they are, and rank 0 gets their hashes.
 *
 * Floor: io.  Collective; one status on all ranks. */
#ifndef IO_SUPPORTS_RANKS_H
#define IO_SUPPORTS_RANKS_H

#include "comm/comm.h"
#include "io/supports.h"

/* A file of this shape that rank 0 has made, without rows: each rank may give the sink of its *f
 * rows of its own, whole sum blocks or what ends the file, in ascending order.  *is 0: rank 0 alone
 * may, as of any result: chunks have no places of their own, or a rank does not see the file, which
 * the log says. */
int supports_ranks_begin(struct supports_output *f, struct comm *c,
                         const struct supports_shape *shape, idx rounds, int *is);

/* Rows first .. end - 1, all behind those of the last call, were written, with all by the ranks
 * together, else by rank 0 alone, whose file has chunks with places (h5/placed.h).  Who wrote
 * brings its own to the disk, reads them again, and checks what `verify` would; then all know the
 * hashes of chunks, and rank 0 has counts of all rows so far. */
int supports_ranks_check(struct supports_output *f, struct comm *c, int all, gidx first, gidx end);
/* Add counts of rows that were checked.  Not collective. */
int supports_counts_add(struct supports_output *f, const struct support_counts *more);
/* This rank has written rows up to `end` of a file whose chunks have places: what is not checked is
 * so from time to time, by a thread beside the writing, so that little is left in the end; it may
 * be of an earlier call that this one says what was wrong.  Not collective. */
int supports_placed_wrote(struct supports_output *f, gidx rows, gidx end);
/* Nobody reads the file any more, before it is closed; safe on a zeroed struct.  Not collective. */
void supports_placed_rest(struct supports_output *f);
/* Chunks of a file that is open have places, as supports_ranks_begin() lets them have.  Not
 * collective. */
int supports_placed_begin(struct supports_output *f, idx rounds);

/* The first `rows` rows were written by the ranks together, and are checked so; then rank 0 has the
 * file as if it had written them, and leaves them out where it verifies it; the others have given
 * it back. */
int supports_ranks_end(struct supports_output *f, struct comm *c, gidx rows);

#endif
